// Tables as data sets: what columns become, how rows are divided, and what is said about tables that cannot be learned.
#include "weft/data/formats/csv.h"

#include <cmath>
#include <numeric>
#include <set>

#include "tests/data/idx_bytes.h"
#include "weft/data/open_dataset.h"

namespace weft::data {
namespace {

class CsvTest : public FilesTest {
 protected:
  void write_text(const std::string& name, const std::string& text) { write(name, Bytes(text.begin(), text.end())); }
  std::string spec(const std::string& options, const std::string& name = "t.csv") const {
    return "csv:" + path(name) + (options.empty() ? "" : "?" + options);
  }
  std::unique_ptr<Dataset> open(const std::string& options, Split split = Split::train,
                                const std::string& encoding = "") {
    return open_dataset(spec(options), split, encoding);
  }
  static std::vector<float> row_of(const Dataset& dataset, int64_t index) {
    std::vector<float> row(static_cast<size_t>(dataset.info().sample_shape[0]));
    dataset.get({.index = index}, {reinterpret_cast<uint8_t*>(row.data()), row.size() * sizeof(float)});
    return row;
  }
  static float value_of(const Dataset& dataset, int64_t index) {
    float value = 0;
    dataset.get_target({.index = index}, {reinterpret_cast<uint8_t*>(&value), sizeof value});
    return value;
  }
  void expect_open_error(const std::string& options, ErrorKind kind, const std::vector<std::string>& parts) {
    expect_error([&] { open(options); }, kind, parts);
  }
};

TEST_F(CsvTest, NumbersAreStandardisedAndMissingOnesFlagged) {
  write_text("t.csv", "x,y,class\n1,5,a\n3,?,b\n5,7,a\n,9,b\n");
  const auto dataset = open("split=0");
  EXPECT_EQ(dataset->info().sample_shape, Shape({4}));
  // x: mean 3, deviation sqrt(8/3); y: mean 7, deviation sqrt(8/3)
  const auto unit = static_cast<float>(2 / std::sqrt(8.0 / 3));
  EXPECT_EQ(row_of(*dataset, 0), (std::vector<float>{-unit, 0, -unit, 0}));
  EXPECT_EQ(row_of(*dataset, 1), (std::vector<float>{0, 0, 0, 1}));
  EXPECT_EQ(row_of(*dataset, 3), (std::vector<float>{0, 1, unit, 0}));
}

TEST_F(CsvTest, TablesAsPandasWritesThemNeedNoOptions) {
  write_text("t.csv", ",x,y,class\n0,1,5,a\n1,3,6,b\n2,5,7,a\n");  // DataFrame.to_csv()
  const auto dataset = open("split=0");
  EXPECT_EQ(dataset->info().sample_shape, Shape({3}));
  EXPECT_NE(dataset->info().note.find("ignore=1 leaves it out"), std::string::npos) << dataset->info().note;
  EXPECT_EQ(open("split=0&ignore=1")->info().sample_shape, Shape({2}));
  EXPECT_EQ(open("split=0&ignore=1")->info().note, "");
  write_text("new.csv", ",x,y\n7,3,6\n");
  const auto rows = open_csv_features({"csv", path("new.csv"), {}}, dataset->info().encoding);
  EXPECT_EQ(rows->size(), 1);
  EXPECT_EQ(row_of(*rows, 0)[1], 0) << "x is the mean";
}

TEST_F(CsvTest, ColumnsThatPandasNumbersAreNotTakenForItsIndex) {
  write_text("t.csv", ",1,2\n10,1,a\n11,3,b\n12,5,a\n");
  const auto dataset = open("split=0&header=yes");
  EXPECT_EQ(dataset->info().sample_shape, Shape({2}));
  const auto unit = static_cast<float>(2 / std::sqrt(8.0 / 3));
  EXPECT_EQ(row_of(*dataset, 2)[1], unit) << "column '1' is the second";
  EXPECT_EQ(row_of(*dataset, 2)[0], static_cast<float>(1 / std::sqrt(2.0 / 3))) << "the nameless one the first";
}

TEST_F(CsvTest, MostlyDifferentNumbersWithManyTextsAreNoCategories) {
  std::string table = "x,class\n";
  for (int row = 0; row < 40; ++row)
    table += (row % 5 == 0 ? "none" : std::to_string(row) + ".5") + (row % 2 == 0 ? ",a\n" : ",b\n");
  write_text("t.csv", table);
  expect_open_error("split=0&header=yes", ErrorKind::data,
                    {"'none' is no number, as most other values of column 'x' are", "add missing=none"});
  EXPECT_EQ(open("split=0&header=yes&missing=none")->info().sample_shape, Shape({2}));
  std::string codes = "x,class\n";  // few numbers, each many times: names
  for (int row = 0; row < 40; ++row)
    codes += (row % 5 == 0 ? "none" : std::to_string(row % 4)) + (row % 2 == 0 ? ",a\n" : ",b\n");
  write_text("t.csv", codes);
  EXPECT_EQ(open("split=0&header=yes")->info().sample_shape, Shape({6})) << "none, 0 to 3, others";
}

TEST_F(CsvTest, TheTestFileMayBeginWithOtherLines) {
  write_text("t.csv", "1,a\n2,b\n3,a\n");
  write_text("t.test", "|1x3 Cross validator\n1,a.\n2,b.\n");  // as UCI's adult.test
  const std::string options = "test=" + path("t.test") + "&test_skip=1";
  const auto train = open(options);
  EXPECT_EQ(train->size(), 3);
  EXPECT_EQ(open(options, Split::test, train->info().encoding)->size(), 2);
  expect_open_error("test_skip=1", ErrorKind::usage, {"test_skip=1", "add test=FILE"});
}

TEST_F(CsvTest, AFileMayHaveANameOfAnyBytes) {
  write_text("l\xe9.csv", "1,a\n2,b\n3,a\n");
  EXPECT_EQ(open_dataset(spec("split=0", "l\xe9.csv"), Split::train)->info().name, "l\\xe9");
}

TEST_F(CsvTest, CategoriesHaveASlotEachAndOneForTheRest) {
  write_text("t.csv", "red,1,a\nblue,1,b\nred,1,a\nblue,1,b\ngreen,1,a\n");
  const auto dataset = open("split=0&header=no");
  EXPECT_EQ(dataset->info().sample_shape, Shape({4})) << "blue, red, others; a constant number";
  EXPECT_EQ(row_of(*dataset, 0), (std::vector<float>{0, 1, 0, 0}));
  EXPECT_EQ(row_of(*dataset, 4), (std::vector<float>{0, 0, 1, 0})) << "seen once only";
  write_text("new.csv", "violet,1,b\n");
  const auto other = open_dataset(spec("", "new.csv"), Split::all, dataset->info().encoding);
  EXPECT_EQ(row_of(*other, 0), (std::vector<float>{0, 0, 1, 0})) << "never seen";
  EXPECT_EQ(other->label(0), 1);
}

TEST_F(CsvTest, ClassesOfNumbersAreInTheirOrder) {
  write_text("t.csv", "x,digit\n1,10\n2,9\n3,10\n4,9\n");
  const auto dataset = open("split=0&label=digit");
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"9", "10"}));
  EXPECT_EQ(dataset->label(0), 1);
}

TEST_F(CsvTest, TheLabelMayStandAnywhere) {
  write_text("t.csv", "class,x\na,1\nb,2\n");
  for (const char* label : {"label=class", "label=1", "label=-2"}) {
    const auto dataset = open(std::string("split=0&") + label);
    EXPECT_EQ(dataset->info().sample_shape, Shape({1})) << label;
    EXPECT_EQ(dataset->label(1), 1) << label;
  }
}

TEST_F(CsvTest, RegressionPredictsTheStandardisedNumber) {
  write_text("t.csv", "x,price\n1,100\n2,300\n");
  const auto dataset = open("task=regression&split=0");
  const DatasetInfo& info = dataset->info();
  EXPECT_EQ(info.task, "regression");
  EXPECT_EQ(info.target_dtype, DType::f32);
  EXPECT_EQ(info.target_shape, Shape({1}));
  EXPECT_EQ(value_of(*dataset, 0), -1);
  EXPECT_EQ(info.targets.mean[0], 200);
  EXPECT_EQ(info.targets.deviation[0], 100);
}

TEST_F(CsvTest, SmallNumbersAreNotTakenForConstant) {
  write_text("t.csv", "x,class\n1e-15,a\n3e-15,b\n");
  EXPECT_EQ(row_of(*open("split=0"), 0), std::vector<float>{-1});
  EXPECT_EQ(row_of(*open("split=0"), 1), std::vector<float>{1});
}

TEST_F(CsvTest, NumbersWithoutAMeanAreNamed) {
  write_text("t.csv", "x,class\n1.7976931348623157e308,a\n1.7976931348623157e308,b\n2,a\n");
  expect_open_error("split=0", ErrorKind::data, {"t.csv'", "1.7976931348623157e308 in column 'x'", "ignore=x"});
}

TEST_F(CsvTest, ColumnsOfSingleTextsAreSaid) {
  std::string text = "price,colour,class\n";
  for (int row = 0; row < 30; ++row)
    text += "$" + std::to_string(100 + row) + ".5,red," + (row % 2 == 0 ? "a\n" : "b\n");
  write_text("t.csv", text);
  const std::string note = open("split=0")->info().note;
  EXPECT_NE(note.find("30 of 30 texts in column 'price', such as '$100.5'"), std::string::npos) << note;
  EXPECT_EQ(open("split=0&ignore=price")->info().note, "");
}

TEST_F(CsvTest, DecimalCommasWhereTheSeparatorIsAnother) {
  write_text("t.csv", "x;class\n1,5;a\n2,5;b\n");
  EXPECT_EQ(row_of(*open("split=0"), 0), std::vector<float>{-1});
}

TEST_F(CsvTest, ColumnsCanBeIgnoredOrTakenForNames) {
  write_text("t.csv", "id,zip,x,class\n7,1000,1,a\n8,1000,2,b\n9,2000,3,a\n10,2000,3,b\n");
  const auto dataset = open("split=0&ignore=id&categories=zip");
  EXPECT_EQ(dataset->info().sample_shape, Shape({4}));
  EXPECT_EQ(row_of(*dataset, 2)[1], 1) << "zip 2000";
}

TEST_F(CsvTest, OneFileIsDividedAlikeInEveryClass) {
  std::string text = "x,class\n";
  for (int row = 0; row < 100; ++row) text += std::to_string(row) + (row % 10 == 0 ? ",rare\n" : ",common\n");
  write_text("t.csv", text);
  const auto train = open("split=0.2");
  const auto test = open("split=0.2", Split::test, train->info().encoding);
  EXPECT_EQ(train->size(), 80);
  ASSERT_EQ(test->size(), 20);
  int rare = 0;
  std::set<float> seen;
  for (int64_t row = 0; row < 20; ++row) {
    rare += test->info().class_names[static_cast<size_t>(test->label(row))] == "rare";
    seen.insert(row_of(*test, row)[0]);
  }
  EXPECT_EQ(rare, 2);
  for (int64_t row = 0; row < 80; ++row) EXPECT_FALSE(seen.contains(row_of(*train, row)[0])) << "in both parts";
  const auto other_seed = open("split=0.2&seed=1", Split::test, train->info().encoding);
  EXPECT_NE(row_of(*other_seed, 0), row_of(*test, 0));
}

TEST_F(CsvTest, TestRowsAreEncodedAsTrainingRows) {
  write_text("t.csv", "x,class\n1,a\n3,b\n");
  write_text("test.csv", "x,class\n5,b.\n");
  const auto train = open("test=" + path("test.csv"));
  const auto test = open("test=" + path("test.csv"), Split::test, train->info().encoding);
  EXPECT_EQ(row_of(*test, 0), std::vector<float>{3}) << "(5 - 2) / 1";
  EXPECT_EQ(test->label(0), 1) << "a full stop behind a class is ignored";
}

TEST_F(CsvTest, ColumnsOfOtherFilesAreFoundByName) {
  write_text("t.csv", "x,y,class\n1,10,a\n3,30,b\n");
  const std::string encoding = open("split=0")->info().encoding;
  write_text("other.csv", "class,extra,y,x\nb,0,20,5\n");
  const auto other = open_dataset(spec("", "other.csv"), Split::all, encoding);
  EXPECT_EQ(row_of(*other, 0), (std::vector<float>{3, 0}));
  EXPECT_EQ(other->label(0), 1);
}

TEST_F(CsvTest, RowsToPredictNeedNoLabel) {
  write_text("t.csv", "1,10,a\n3,30,b\n");
  const std::string encoding = open("split=0")->info().encoding;
  write_text("rows.csv", "5,20\n");
  DataSpec rows{.kind = "csv", .argument = path("rows.csv"), .options = {}};
  EXPECT_EQ(row_of(*open_csv_features(rows, encoding), 0), (std::vector<float>{3, 0}));
}

TEST_F(CsvTest, EncodingSurvivesItsTextForm) {
  write_text("t.csv", "x;colour;class\n1,25;red;a\n?;red;b\n4;blü;a\n4;blü;b\n");
  const std::string encoding = open("split=0")->info().encoding;
  EXPECT_EQ(TableEncoding::from_json(encoding).to_json(), encoding);
  const auto again = open("split=0", Split::train, encoding);
  EXPECT_EQ(row_of(*again, 0), row_of(*open("split=0"), 0));
}

TEST_F(CsvTest, UnknownLabelColumn) {
  write_text("t.csv", "age,income\n1,a\n2,b\n");
  expect_open_error("label=incme", ErrorKind::usage, {"no column 'incme' (label)", "did you mean 'income'?"});
}

TEST_F(CsvTest, LabelNumberPastTheLastColumn) {
  write_text("t.csv", "1,a\n2,b\n");
  expect_open_error("label=5", ErrorKind::usage, {"no column '5' (label)", "2 columns"});
}

TEST_F(CsvTest, OneClassOnly) {
  write_text("t.csv", "1,a\n2,a\n");
  expect_open_error("split=0", ErrorKind::data, {"all 2 training rows have the label 'a'", "label=COLUMN"});
}

TEST_F(CsvTest, MissingLabel) {
  write_text("t.csv", "1,a\n2,?\n3,b\n");
  expect_open_error("split=0", ErrorKind::data, {"t.csv':2:3: the label, column '2', is missing"});
}

TEST_F(CsvTest, NumbersAsClassesPointToRegression) {
  std::string text = "x,price\n";
  for (int row = 0; row < 60; ++row) text += std::to_string(row) + "," + std::to_string(1000 + 7 * row) + "\n";
  write_text("t.csv", text);
  expect_open_error("split=0", ErrorKind::data, {"60 different labels in 60 rows", "task=regression"});
}

TEST_F(CsvTest, TextAmongNumbers) {
  std::string text = "x,class\n";
  for (int row = 0; row < 40; ++row) text += row == 17 ? "n.a.,a\n" : std::to_string(row) + (row % 2 ? ",a\n" : ",b\n");
  write_text("t.csv", text);
  expect_open_error("split=0", ErrorKind::data, {"t.csv':19:1: 'n.a.' is no number", "missing=n.a.", "categories=x"});
}

TEST_F(CsvTest, TextInANumberColumnOfTestRows) {
  write_text("t.csv", "x,class\n1,a\n3,b\n");
  write_text("test.csv", "x,class\n5,b\nmany,a\n");
  const auto train = open("test=" + path("test.csv"));
  expect_error([&] { open("test=" + path("test.csv"), Split::test, train->info().encoding); }, ErrorKind::data,
               {"test.csv':3:1: 'many' is no number, as column 'x' wants"});
}

TEST_F(CsvTest, ClassThatTrainingRowsLack) {
  write_text("t.csv", "x,class\n1,apple\n3,pear\n");
  write_text("test.csv", "x,class\n5,pears\n");
  const auto train = open("test=" + path("test.csv"));
  expect_error([&] { open("test=" + path("test.csv"), Split::test, train->info().encoding); }, ErrorKind::data,
               {"test.csv':2:3: 'pears' is no class", "did you mean 'pear'?"});
}

TEST_F(CsvTest, RegressionOnText) {
  write_text("t.csv", "1,a\n2,b\n");
  expect_open_error("task=regression&split=0", ErrorKind::data, {"t.csv':1:3: 'a' is no number"});
}

TEST_F(CsvTest, OneColumn) {
  write_text("t.csv", "1\n2\n");
  expect_open_error("split=0", ErrorKind::data, {"has one column", "separator=..."});
}

TEST_F(CsvTest, NothingBesideTheLabel) {
  write_text("t.csv", "1,a\n2,b\n");
  expect_open_error("split=0&ignore=1", ErrorKind::data, {"nothing to learn from beside the label"});
}

TEST_F(CsvTest, OtherColumnsThanInTraining) {
  write_text("t.csv", "x,y,class\n1,1,a\n3,2,b\n");
  const std::string encoding = open("split=0")->info().encoding;
  write_text("other.csv", "x,class,z\n1,a,3\n");
  expect_error([&] { open_dataset(spec("", "other.csv"), Split::all, encoding); }, ErrorKind::data,
               {"other.csv' has no column 'y', which the model was trained with"});
  write_text("narrow.csv", "1\n");
  expect_error([&] { open_dataset(spec("", "narrow.csv"), Split::all, encoding); }, ErrorKind::data,
               {"has 1 columns, the training data have 3"});
}

TEST_F(CsvTest, UnknownOption) {
  expect_open_error("lable=x", ErrorKind::usage, {"[csv] there is no option 'lable'", "did you mean 'label'?"});
}

TEST_F(CsvTest, OptionWithoutValue) {
  expect_open_error("label", ErrorKind::usage, {"'label' is no option: write NAME=VALUE"});
}

TEST_F(CsvTest, OptionTwice) { expect_open_error("skip=1&skip=2", ErrorKind::usage, {"'skip' is given twice"}); }

TEST_F(CsvTest, OptionOutOfRange) {
  expect_open_error("split=1.5", ErrorKind::usage, {"[csv] split=1.5: wants a number from 0 to below 1"});
  expect_open_error("task=ranking", ErrorKind::usage, {"wants one of: classification regression"});
  expect_open_error("skip=many", ErrorKind::usage, {"wants a whole number"});
}

TEST_F(CsvTest, TestFileAndSplit) { expect_open_error("test=a&split=0.1", ErrorKind::usage, {"exclude each other"}); }

TEST_F(CsvTest, NoFile) {
  expect_error([] { open_dataset("csv:", Split::train); }, ErrorKind::usage, {"csv:FILE"});
}

TEST_F(CsvTest, EncodingOfAnotherKind) {
  write_text("t.csv", "1,a\n2,b\n");
  expect_error([&] { open("", Split::all, R"({"kind":"text","vocabulary":["a"]})"); }, ErrorKind::data,
               {"the model was not trained on a table"});
}

TEST_F(CsvTest, ATitleAboveTheTestRowsIsToldByItsOption) {
  write_text("t.csv", "1,a\n2,b\n");
  write_text("test.csv", "|1x3 Cross validator\n3,a\n4,b\n");  // as UCI's adult.test begins
  const std::string test = "test=" + path("test.csv");
  expect_error([&] { open(test, Split::test); }, ErrorKind::data, {"test.csv':2:4", "leave it out with test_skip=1"});
  EXPECT_EQ(open(test + "&test_skip=1", Split::test)->size(), 2);
}

TEST_F(CsvTest, SeveralLabelsOfARegressionAreAVectorInTheOrderOfTheirNames) {
  write_text("t.csv", "a,x,b\n1,5,10\n3,7,30\n5,9,20\n");
  const auto dataset = open("label=b,a&task=regression&split=0");
  EXPECT_EQ(dataset->info().sample_shape, Shape({1}));
  EXPECT_EQ(dataset->info().target_shape, Shape({2}));
  EXPECT_EQ(dataset->info().classes, 2);
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(dataset->info().targets.mean, (std::vector<double>{20, 3}));
  float values[2];
  dataset->get_target({.index = 1}, {reinterpret_cast<uint8_t*>(values), sizeof values});
  EXPECT_FLOAT_EQ(values[0], static_cast<float>(10 / std::sqrt(200.0 / 3)));
  EXPECT_FLOAT_EQ(values[1], 0);
  // As the run keeps it: other rows have their values in the same order.
  const auto again = open("label=b,a&task=regression", Split::all, dataset->info().encoding);
  EXPECT_EQ(again->info().class_names, dataset->info().class_names);
  again->get_target({.index = 1}, {reinterpret_cast<uint8_t*>(values), sizeof values});
  EXPECT_FLOAT_EQ(values[0], static_cast<float>(10 / std::sqrt(200.0 / 3)));
  // Without a header by number; features need none of the labels.
  write_text("t.csv", "1,5,10\n3,7,30\n5,9,20\n");
  const std::string encoding = open("label=3,1&task=regression&split=0&header=no")->info().encoding;
  write_text("rows.csv", "5\n9\n");
  EXPECT_EQ(open_csv_features(parse_data_spec(spec("", "rows.csv")), encoding)->size(), 2);
}

TEST_F(CsvTest, AColumnWhoseNameHoldsACommaIsOneLabel) {
  write_text("t.csv", "x,\"a,b\"\n1,2\n2,4\n3,7\n");
  EXPECT_EQ(open("label=a,b&task=regression&split=0")->info().class_names, std::vector<std::string>{"a,b"});
}

TEST_F(CsvTest, SeveralLabelsAreForNumbers) {
  write_text("t.csv", "x,a,b\n1,p,q\n2,q,q\n3,p,p\n");
  expect_open_error("label=a,b&split=0", ErrorKind::usage,
                    {"label=a,b names 2 columns", "add task=regression", "leave the others out with ignore="});
  expect_open_error("label=a,c&task=regression", ErrorKind::usage, {"no column 'c' (label)"});
  expect_open_error("label=a,a&task=regression", ErrorKind::usage, {"names column 'a' twice"});
}

TEST_F(CsvTest, ARowWithoutOneOfSeveralLabelsIsUnlabelled) {
  write_text("t.csv", "x,a,b\n1,5,10\n3,?,30\n5,9,20\n7,1,\n");
  expect_open_error("label=a,b&task=regression&split=0", ErrorKind::data,
                    {"t.csv':3:3", "the label, column 'a', is missing", "unlabelled=drop"});
  EXPECT_EQ(open("label=a,b&task=regression&split=0&unlabelled=drop")->size(), 2);
}

TEST_F(CsvTest, ValuesTooLargeToReckonWithAreNamedWhereTheyStand) {
  write_text("t.csv", "x,y\n1,5\n2,6\n3,8\n4,9\n");
  const std::string encoding = open("task=regression&split=0")->info().encoding;
  const auto expect_named = [&](const std::string& rows, const std::vector<std::string>& parts) {
    write_text("test.csv", rows);
    expect_error([&] { open("task=regression&test=" + path("test.csv"), Split::test); }, ErrorKind::data, parts);
  };
  expect_named("x,y\n1,5\n2,1e39\n", {"test.csv':3:3", "1e39 in column 'y' is too large to reckon with",
                                      "mean 7 and deviation 1.581", "correct it"});
  expect_named("x,y\n1e39,5\n2,6\n", {"test.csv':2:1", "1e39 in column 'x'"});
  expect_named("x,y\n1,-1e20\n", {"test.csv':2:3", "-1e20"});
  expect_named("x,y\n1,inf\n", {"test.csv':2:3", "'inf' is no number"});
  expect_named("x,y\n1,1e999\n", {"test.csv':2:3", "'1e999' is no number"});
  write_text("rows.csv", "x\n3\n1e39\n");
  expect_error([&] { open_csv_features(parse_data_spec(spec("", "rows.csv")), encoding); }, ErrorKind::data,
               {"rows.csv':3:1", "column 'x'"});
  write_text("t.csv", "x,y\n1,5\n2,6\n3,1e300\n4,9\n");
  expect_open_error("task=regression&split=0", ErrorKind::data,
                    {"t.csv':4:3", "1e300", "column 'y' have no mean and deviation"});
}

TEST_F(CsvTest, ARunWithoutNamesReadsAFileThatHasThem) {
  write_text("t.csv", "1,5,a\n2,6,b\n3,8,a\n4,9,b\n");
  const std::string encoding = open("split=0")->info().encoding;
  write_text("rows.csv", "width,height\n3,5\n4,6\n");
  const auto rows = open_csv_features(parse_data_spec(spec("", "rows.csv")), encoding);
  EXPECT_EQ(rows->size(), 2);
  EXPECT_NE(rows->info().note.find("rows.csv': its first row names the columns; the model was trained on a table "
                                   "without names, so that they are taken in their order"),
            std::string::npos)
      << rows->info().note;
  write_text("rows.csv", "3,5\n4,6\n7,7\n");
  const auto plain = open_csv_features(parse_data_spec(spec("", "rows.csv")), encoding);
  EXPECT_EQ(plain->size(), 3);
  EXPECT_EQ(plain->info().note, "");
  // A mistake in the first row is no header: the second one has to be better, and all numbers of the first texts.
  write_text("rows.csv", "3,five\n4,6\n");
  expect_error([&] { open_csv_features(parse_data_spec(spec("", "rows.csv")), encoding); }, ErrorKind::data,
               {"rows.csv':1:3", "'five' is no number"});
}

TEST_F(CsvTest, ARunWithNamesReadsAFileWithoutThemByPosition) {
  write_text("t.csv", "width,height,kind\n1,5,a\n2,6,b\n3,8,a\n4,9,b\n");
  const auto trained = open("split=0");
  write_text("rows.csv", "1,5\n2,6\n");
  const auto rows = open_csv_features(parse_data_spec(spec("", "rows.csv")), trained->info().encoding);
  EXPECT_EQ(row_of(*rows, 1), row_of(*trained, 1));
  EXPECT_NE(rows->info().note.find("has no row with the names of its columns; they are taken in the order of the "
                                   "training data"),
            std::string::npos)
      << rows->info().note;
}

}  // namespace
}  // namespace weft::data
