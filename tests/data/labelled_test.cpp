// Texts in classes: tokens, lengths, labels, and what is said about files that do not fit.
#include "weft/data/formats/labelled.h"

#include "tests/support/files_for_tests.h"
#include "weft/data/open_dataset.h"

namespace weft::data {
namespace {

using Tokens = std::vector<int32_t>;

class LabelledTest : public FilesTest {
 protected:
  std::unique_ptr<Dataset> open(const std::string& text, const std::string& options = "split=0",
                                Split split = Split::train, const std::string& encoding = "") {
    write("l.tsv", Bytes(text.begin(), text.end()));
    return open_dataset("labelled:" + path("l.tsv") + "?" + options, split, encoding);
  }
  static Tokens sample(const Dataset& dataset, int64_t index) {
    Tokens tokens(static_cast<size_t>(dataset.info().sample_shape[0]));
    dataset.get({.index = index}, {reinterpret_cast<uint8_t*>(tokens.data()), 4 * tokens.size()});
    return tokens;
  }
};

TEST_F(LabelledTest, PaddingStandsBeforeTheText) {
  const auto dataset = open("good\tabba\nbad\tba\n");
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"bad", "good"}));
  EXPECT_EQ(dataset->info().task, "classification");
  EXPECT_EQ(dataset->info().vocabulary, 4) << "padding, others, a, b";
  EXPECT_EQ(sample(*dataset, 0), (Tokens{2, 3, 3, 2}));
  EXPECT_EQ(sample(*dataset, 1), (Tokens{0, 0, 3, 2}));
  EXPECT_EQ(dataset->label(0), 1);
  EXPECT_EQ(dataset->label(1), 0);
}

TEST_F(LabelledTest, WhatTrainingTextsHaveOnceIsOther) {
  const auto dataset = open("x\taab\ny\taac\n");
  EXPECT_EQ(sample(*dataset, 0), (Tokens{2, 2, 1}));
  const auto other = open("x\tazb\n", "", Split::all, dataset->info().encoding);
  EXPECT_EQ(sample(*other, 0), (Tokens{2, 1, 1}));
}

TEST_F(LabelledTest, WordsAndLabelsBehindTheTextsAndAHeader) {
  const auto dataset =
      open("sentence\tlabel\nso good, so fine\t1\nso, no good\t0\n", "split=0&unit=word&label=2&skip=1");
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(dataset->info().sample_shape, Shape{5});  // "," is one
  // 2 ",", 3 good, 4 so
  EXPECT_EQ(sample(*dataset, 0), (Tokens{4, 3, 2, 4, 1}));
  EXPECT_EQ(sample(*dataset, 1), (Tokens{0, 4, 2, 1, 3}));
}

TEST_F(LabelledTest, ClassesThatAreNumbersStandInTheirOrder) {
  EXPECT_EQ(open("10\taa\n2\taa\n-1\taa\n")->info().class_names, (std::vector<std::string>{"-1", "2", "10"}));
  EXPECT_EQ(open("10\taa\n2\taa\nx\taa\n")->info().class_names, (std::vector<std::string>{"10", "2", "x"}));
}

TEST_F(LabelledTest, OptionsOtherThanTheTrainedOnesAreRefused) {
  const std::string text = "x\taab\ny\taac\n", encoding = open(text)->info().encoding;
  EXPECT_NO_THROW(open(text, "unit=character&length=3", Split::all, encoding));
  expect_error([&] { open(text, "length=2", Split::all, encoding); }, ErrorKind::usage,
               {"[labelled] length=2: the model was trained with 3"});
  expect_error([&] { open(text, "unit=word", Split::all, encoding); }, ErrorKind::usage,
               {"[labelled] unit=word: the model was trained with character"});
}

TEST_F(LabelledTest, TextsWithoutAnyRepetition) {
  expect_error([&] { open("x\tone two\ny\tthree four\n", "split=0&unit=word"); }, ErrorKind::data,
               {"no word stands there 2 times", "unit=character"});
}

TEST_F(LabelledTest, OfLongTextsTheBeginningCounts) {
  const auto dataset = open("x\taabb\ny\tab\n", "split=0&length=3");
  EXPECT_EQ(sample(*dataset, 0), (Tokens{2, 2, 3}));
  EXPECT_NE(dataset->info().note.find("of 1 text longer than 3 characters the beginning alone counts"),
            std::string::npos);
}

TEST_F(LabelledTest, SplitsEveryClass) {
  std::string text;
  for (int at = 0; at < 40; ++at) text += std::string(at % 4 == 0 ? "rare" : "common") + "\ttext aa\n";
  const auto test = open(text, "split=0.2", Split::test, open(text, "split=0.2")->info().encoding);
  ASSERT_EQ(test->size(), 8);
  int64_t rare = 0;
  for (int64_t index = 0; index < 8; ++index) rare += test->label(index) == 1 ? 1 : 0;
  EXPECT_EQ(rare, 2);
}

TEST_F(LabelledTest, VocabularyIsLimited) {
  EXPECT_EQ(open("x\taaabbcc\ny\ta\n", "split=0&vocabulary=2")->info().vocabulary, 4);
}

TEST_F(LabelledTest, OneLabelOnly) {
  expect_error([&] { open("x\ta\nx\tb\n"); }, ErrorKind::data,
               {"l.tsv' has 1 different label, such as 'x'", "label=2 where they stand behind the texts"});
}

TEST_F(LabelledTest, UnknownLabelIsNamedWithItsLine) {
  const std::string encoding = open("good\taa\nbad\tbb\n")->info().encoding;
  expect_error([&] { open("good\ta\ngodo\tb\n", "", Split::all, encoding); }, ErrorKind::data,
               {"l.tsv':2: the label 'godo' is none of the 2 classes", "did you mean 'good'?"});
}

TEST_F(LabelledTest, WrongOptionsAndOtherModels) {
  expect_error([&] { open("x\ta\n", "label=3"); }, ErrorKind::usage, {"label=3: wants a whole number from 1 to 2"});
  expect_error([&] { open("x\ta\n", "unit=line"); }, ErrorKind::usage, {"unit=line: wants one of: character word"});
  expect_error([&] { open("x\ta\n", "test=y&split=0.1"); }, ErrorKind::usage, {"exclude each other"});
  expect_error([&] { open("x\ta\n", "", Split::all, "{}"); }, ErrorKind::data, {"was not trained on labelled texts"});
  expect_error([&] { open("x a\n"); }, ErrorKind::data, {"l.tsv':1: the line has no tab; want LABEL<TAB>TEXT"});
}

}  // namespace
}  // namespace weft::data
