// Cells as RFC 4180 and common sense have them, and what is said about files that are none.
#include "weft/data/texts/csv_reader.h"

#include "tests/data/idx_bytes.h"

namespace weft::data {
namespace {

class CsvReaderTest : public FilesTest {
 protected:
  void write_text(const std::string& text) { write("t.csv", Bytes(text.begin(), text.end())); }
  /// All cells, a row per line, with | between them.
  std::string cells_of(const std::string& text, CsvOptions options = {}) {
    write_text(text);
    const CsvFile file(path("t.csv"), options);
    std::string out;
    for (int64_t row = 0; row < file.rows(); ++row)
      for (int64_t column = 0; column < file.columns(); ++column)
        out += std::string(file.cell(row, column)) + (column + 1 < file.columns() ? "|" : "\n");
    return out;
  }
  bool finds_header(const std::string& text) {
    write_text(text);
    return !CsvFile(path("t.csv"), {}).header().empty();
  }
  void expect_csv_error(const std::string& text, const std::vector<std::string>& parts, CsvOptions options = {}) {
    write_text(text);
    expect_error([&] { CsvFile(path("t.csv"), options); }, ErrorKind::data, parts);
  }
};

const CsvOptions kNoHeader{.separator = 0, .header = Header::no, .skip = 0, .wanted_name = {}};

TEST_F(CsvReaderTest, DividesRowsIntoCells) { EXPECT_EQ(cells_of("1,2,x\n3,,y\n", kNoHeader), "1|2|x\n3||y\n"); }

TEST_F(CsvReaderTest, TheLastLineNeedsNoEnd) { EXPECT_EQ(cells_of("1,2\n3,4", kNoHeader), "1|2\n3|4\n"); }

TEST_F(CsvReaderTest, AnEmptyLastFieldIsAField) { EXPECT_EQ(cells_of("1,2\n3,", kNoHeader), "1|2\n3|\n"); }

TEST_F(CsvReaderTest, LinesMayEndAsOnWindows) { EXPECT_EQ(cells_of("1,2\r\n3,4\r\n", kNoHeader), "1|2\n3|4\n"); }

TEST_F(CsvReaderTest, EmptyLinesAndByteOrderMarksAreLeftOut) {
  EXPECT_EQ(cells_of("\xef\xbb\xbf\n1,2\n\n  \n3,4\n\n", kNoHeader), "1|2\n3|4\n");
}

TEST_F(CsvReaderTest, QuotedFieldsHoldSeparatorsQuotesAndLines) {
  EXPECT_EQ(cells_of("\"a,b\",\"say \"\"yes\"\"\",\"two\nlines\"\n1,2,3\n", kNoHeader),
            "a,b|say \"yes\"|two\nlines\n1|2|3\n");
}

TEST_F(CsvReaderTest, BlanksAroundFieldsGoUnlessQuoted) {
  EXPECT_EQ(cells_of(" a , \" b \" ,c\t\n1,2,3\n", kNoHeader), "a| b |c\n1|2|3\n");
}

TEST_F(CsvReaderTest, FindsTheSeparator) {
  EXPECT_EQ(cells_of("1;2,5;x\n3;4,5;y\n", kNoHeader), "1|2,5|x\n3|4,5|y\n");
  EXPECT_EQ(cells_of("1\t2 a\n3\t4 b\n", kNoHeader), "1|2 a\n3|4 b\n");
  EXPECT_EQ(cells_of("1|\"a;b;c\"\n3|\"d;e;f\"\n", kNoHeader), "1|a;b;c\n3|d;e;f\n");
}

TEST_F(CsvReaderTest, TakesTheSeparatorGiven) {
  EXPECT_EQ(cells_of("1;2,5\n3;4,5\n", {.separator = ',', .header = Header::no, .skip = 0, .wanted_name = {}}),
            "1;2|5\n3;4|5\n");
}

TEST_F(CsvReaderTest, SkipsLines) {
  EXPECT_EQ(cells_of("# made by hand\n0,1,2,3\n1,2\n3,4\n",
                     {.separator = 0, .header = Header::no, .skip = 2, .wanted_name = {}}),
            "1|2\n3|4\n");
}

TEST_F(CsvReaderTest, TellsAHeader) {
  EXPECT_TRUE(finds_header("age,city\n31,Rome\n42,Oslo\n")) << "a text over numbers";
  EXPECT_TRUE(finds_header("animal,class\ncat,a\ndog,b\ncat,a\n")) << "texts that never occur again";
  EXPECT_FALSE(finds_header("31,Rome\n42,Oslo\n"));
  EXPECT_FALSE(finds_header("cat,a\ndog,b\ncat,a\n")) << "'cat' occurs again";
  EXPECT_FALSE(finds_header("?,x\n3,y\n4,x\n")) << "a missing number is no name";
}

TEST_F(CsvReaderTest, AHeaderNamesColumnsAndIsNoRow) {
  write_text("a,\"b c\"\n1,2\n");
  const CsvFile file(path("t.csv"), {});
  EXPECT_EQ(file.header(), (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(file.rows(), 1);
}

TEST_F(CsvReaderTest, NamesThePlaceOfACell) {
  write_text("a,b\n\n1,2\n\"x\ny\",22\n5,6\n");
  const CsvFile file(path("t.csv"), {.separator = 0, .header = Header::yes, .skip = 0, .wanted_name = {}});
  EXPECT_EQ(file.where(0, 1), "'" + path("t.csv") + "':3:3");
  EXPECT_EQ(file.where(2, 0), "'" + path("t.csv") + "':6:1") << "a quoted field took two lines";
}

TEST_F(CsvReaderTest, Numbers) {
  double number = 0;
  EXPECT_TRUE(parse_number("-1.5e3", false, number));
  EXPECT_EQ(number, -1500);
  EXPECT_TRUE(parse_number("+7", false, number));
  EXPECT_EQ(number, 7);
  EXPECT_TRUE(parse_number("2,5", true, number));
  EXPECT_EQ(number, 2.5);
  for (const char* text : {"", "2,5", "1x", "nan", "inf", "0x10", "1 2"})
    EXPECT_FALSE(parse_number(text, false, number)) << text;
}

TEST_F(CsvReaderTest, RaggedRow) {
  expect_csv_error("1,2,3\n4,5\n", {"t.csv':2:4: 2 fields in this row, 3 in the first", "skip=N"});
}

TEST_F(CsvReaderTest, ATitleAboveTheTable) {
  expect_csv_error("\n|1x3 Cross validator\n4,5\n6,7\n",
                   {"t.csv':3:4: 1 fields in this row, 2 in line 2, the first", "title or a comment", "skip=2"});
}

TEST_F(CsvReaderTest, QuoteThatNeverCloses) {
  expect_csv_error("1,2\n3,\"4\n5,6\n", {"t.csv':2:3: a quote opens here and nothing closes it"});
}

TEST_F(CsvReaderTest, TextBehindAQuotedField) {
  expect_csv_error("1,\"a\"b\n", {"t.csv':1:6: text follows a quoted field"});
}

TEST_F(CsvReaderTest, EmptyFile) {
  expect_csv_error("\n\n", {"t.csv' holds no rows"});
  expect_csv_error("", {"t.csv' holds no rows"});
}

TEST_F(CsvReaderTest, HeaderAlone) {
  expect_csv_error("a,b\n", {"holds a header and no rows"},
                   {.separator = 0, .header = Header::yes, .skip = 0, .wanted_name = {}});
}

TEST_F(CsvReaderTest, TwoColumnsOfOneName) {
  expect_csv_error("a,a\n1,2\n", {"t.csv':1:3: two columns are named 'a'"});
}

TEST_F(CsvReaderTest, BinaryFile) { expect_csv_error(std::string("a,b\n\0,1\n", 8), {"is no text", "zero bytes"}); }

TEST_F(CsvReaderTest, NoUtf8) { expect_csv_error("a,caf\xe9\n1,2\n", {"is no UTF-8 text: byte 6 (0xe9)", "iconv"}); }

TEST_F(CsvReaderTest, MissingFile) {
  expect_error([&] { CsvFile(path("none.csv"), {}); }, ErrorKind::io, {"no file", "none.csv", "check the path"});
}

}  // namespace
}  // namespace weft::data
