// Tables as people and other programs write them: columns between blanks, words for what is not known, rows without a
// label.
#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"
#include "weft/data/formats/csv.h"
#include "weft/data/texts/csv_reader.h"

namespace weft::data {
namespace {

class CsvWords : public FilesTest {
 protected:
  std::string text(const std::string& content) const { return write("t.csv", Bytes(content.begin(), content.end())); }
  std::unique_ptr<Dataset> open(const std::string& content, const std::string& options = "") const {
    return open_csv(parse_data_spec("csv:" + text(content) + "?split=0" + options), Split::train, "");
  }
};

TEST_F(CsvWords, ColumnsBetweenBlanksAreFound) {
  const CsvFile file(text("  width  height\tkind \n  1.5    20   a\n10      3\t\tb  \r\n"), {});
  EXPECT_EQ(file.separator(), kBlanks);
  ASSERT_EQ(file.columns(), 3);
  ASSERT_EQ(file.rows(), 2);
  EXPECT_EQ(file.header(), (std::vector<std::string>{"width", "height", "kind"}));
  EXPECT_EQ(file.cell(0, 0), "1.5");
  EXPECT_EQ(file.cell(1, 1), "3");
  EXPECT_EQ(file.cell(1, 2), "b");
}

TEST_F(CsvWords, QuotedFieldsMayHoldBlanks) {
  const CsvFile file(text("1 \"a b\" 2\n3 \"c  d\" 4\n"), {.separator = kBlanks, .wanted_name = {}});
  ASSERT_EQ(file.columns(), 3);
  EXPECT_EQ(file.cell(1, 1), "c  d");
  EXPECT_EQ(file.cell(1, 2), "4");
}

TEST_F(CsvWords, SentencesAreOneColumn) {
  const CsvFile file(text("a text\nof some lines here\n"), {});
  EXPECT_EQ(file.columns(), 1);
}

TEST_F(CsvWords, UsualWordsForNotKnownAreTakenForThat) {
  const auto data = open("a,b\n1,x\nNULL,y\n3,x\n-,y\n5,x\n");
  EXPECT_EQ(data->size(), 5) << "the first row is the header";
  EXPECT_EQ(data->info().sample_shape, (Shape{2})) << "a number, and whether it is missing";
  EXPECT_NE(data->info().note.find("'-' (1 times), 'NULL' (1 times) is taken for a value that is not known"),
            std::string::npos)
      << data->info().note;
}

TEST_F(CsvWords, WordsThatAreNamedReplaceThem) {
  const auto data = open("a,b\n1,x\nNULL,y\n3,x\n-,y\n5,x\n", "&missing=%3F");
  EXPECT_EQ(data->info().note.find("is taken for a value that is not known"), std::string::npos) << data->info().note;
  EXPECT_NE(data->info().sample_shape, (Shape{2})) << "a column of categories";
}

TEST_F(CsvWords, RowsWithoutALabelAreLeftOutOnRequest) {
  const std::string table = "a,b\n1,x\n2,\n3,y\n4,NA\n5,x\n";
  expect_error([&] { open(table); }, ErrorKind::data, {"the label, ", "unlabelled=drop"});
  const auto data = open(table, "&unlabelled=drop");
  EXPECT_EQ(data->size(), 3);
  EXPECT_NE(data->info().note.find("2 rows without a label are left out"), std::string::npos) << data->info().note;
}

}  // namespace
}  // namespace weft::data
