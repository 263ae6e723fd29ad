// Pairs of texts: tokens of both sides, lengths, what is left out, and what is said about files that are no pairs.
#include "weft/data/formats/pairs.h"

#include <set>

#include "tests/support/files_for_tests.h"
#include "weft/data/open_dataset.h"

namespace weft::data {
namespace {

using PairTokens = std::vector<int32_t>;

class PairsTest : public FilesTest {
 protected:
  std::unique_ptr<Dataset> open(const std::string& text, const std::string& options = "split=0",
                                Split split = Split::train, const std::string& encoding = "") {
    write("p.tsv", Bytes(text.begin(), text.end()));
    return open_dataset("pairs:" + path("p.tsv") + "?" + options, split, encoding);
  }
  void expect_open_error(const std::string& text, const std::vector<std::string>& parts,
                         const std::string& options = "split=0", ErrorKind kind = ErrorKind::data) {
    expect_error([&] { open(text, options); }, kind, parts);
  }
  static PairTokens sample(const Dataset& dataset, int64_t index) {
    PairTokens tokens(static_cast<size_t>(dataset.info().sample_shape[0]));
    dataset.get({.index = index}, {reinterpret_cast<uint8_t*>(tokens.data()), 4 * tokens.size()});
    return tokens;
  }
  static PairTokens target(const Dataset& dataset, int64_t index) {
    PairTokens tokens(static_cast<size_t>(dataset.info().target_shape[0]));
    dataset.get_target({.index = index}, {reinterpret_cast<uint8_t*>(tokens.data()), 4 * tokens.size()});
    return tokens;
  }
  /// Numbered pairs: "a<TAB>b" and so on.
  static std::string many(int count) {
    std::string text;
    for (int at = 0; at < count; ++at) text += std::to_string(1000 + at) + "\t" + std::to_string(at) + "\n";
    return text;
  }
};

TEST_F(PairsTest, SourcePaddingStartTargetAndTheSameOneAhead) {
  const auto dataset = open("ab\tB\nb\tAB\n");
  // 0 padding, 1 start, 2 end, 3 A, 4 B, 5 a, 6 b
  EXPECT_EQ(dataset->info().class_names,
            (std::vector<std::string>{"<padding>", "<start>", "<end>", "A", "B", "a", "b"}));
  EXPECT_EQ(sample(*dataset, 0), (PairTokens{5, 6, 1, 4, 0}));
  EXPECT_EQ(target(*dataset, 0), (PairTokens{4, 2, -100}));
  EXPECT_EQ(sample(*dataset, 1), (PairTokens{6, 0, 1, 3, 4}));
  EXPECT_EQ(target(*dataset, 1), (PairTokens{3, 4, 2}));
  EXPECT_EQ(dataset->info().task, "translation");
  EXPECT_EQ(dataset->info().source_length, 2);
  EXPECT_EQ(dataset->info().classes, 7);
}

TEST_F(PairsTest, CharactersAreCodePoints) {
  const auto dataset = open("für\t€\n");
  EXPECT_EQ(dataset->info().source_length, 3);
  EXPECT_EQ(dataset->info().target_shape, Shape{2});
}

TEST_F(PairsTest, ReadsWindowsFilesWithAMarkAndMoreColumns) {
  const auto dataset = open("\xef\xbb\xbf a \tb\tattribution\r\nb\ta\r\n");
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->info().classes, 3 + 2) << "neither the mark nor blanks nor the third column count";
  EXPECT_EQ(dataset->info().note, "");
}

TEST_F(PairsTest, GzipFilesAreRead) {
  const std::string text = "ab\tc\n";
  write_gzip("p.tsv.gz", Bytes(text.begin(), text.end()));
  EXPECT_EQ(open_dataset("pairs:" + path("p.tsv.gz") + "?split=0", Split::train)->info().source_length, 2);
}

TEST_F(PairsTest, WhatIsLeftOutIsCounted) {
  const auto dataset = open("a\tb\n\nabc\tb\n \t b\n\t\nabcd\tb\n", "split=0&source=2");
  EXPECT_EQ(dataset->size(), 1);
  EXPECT_EQ(dataset->info().note, "'" + path("p.tsv") +
                                      "': left out 2 lines without text (such as line 2), 1 line with an empty field "
                                      "(line 4), 2 lines longer than 2 to 1 characters (such as line 3)");
}

TEST_F(PairsTest, FactsAreOfLengthsAndVocabulary) {
  const auto dataset = open("ab\tB\nb\tAB\n");
  const std::vector<std::pair<std::string, std::string>> wanted{
      {"sources", "1 to 2 characters, 99 % up to 1, mean 1.5"},
      {"targets", "1 to 2 characters, 99 % up to 1, mean 1.5"},
      {"vocabulary", "4 characters: ABab"}};
  EXPECT_EQ(dataset->info().facts, wanted);
}

TEST_F(PairsTest, SplitsBySeed) {
  const auto ones = [&](const std::string& options, Split split) {
    const auto dataset = open(many(100), options, split);
    std::set<PairTokens> samples;
    for (int64_t index = 0; index < dataset->size(); ++index) samples.insert(sample(*dataset, index));
    return samples;
  };
  const auto train = ones("split=0.2", Split::train), test = ones("split=0.2", Split::test);
  EXPECT_EQ(train.size(), 80u);
  EXPECT_EQ(test.size(), 20u);
  for (const PairTokens& tokens : test) EXPECT_FALSE(train.contains(tokens));
  EXPECT_EQ(ones("split=0.2", Split::test), test);
  EXPECT_NE(ones("split=0.2&seed=1", Split::test), test);
  EXPECT_EQ(ones("split=0.2", Split::all).size(), 100u);
}

TEST_F(PairsTest, TheTestFileCountsForLengthsAndVocabulary) {
  const std::string text = "wxyz\tq\n";
  write("test.tsv", Bytes(text.begin(), text.end()));
  const std::string options = "test=" + path("test.tsv");
  const auto train = open("a\tbb\n", options);
  EXPECT_EQ(train->info().source_length, 4);
  EXPECT_EQ(train->size(), 1);
  const auto test = open("a\tbb\n", options, Split::test, train->info().encoding);
  EXPECT_EQ(test->info().sample_shape, train->info().sample_shape);
  EXPECT_EQ(test->size(), 1);
  EXPECT_TRUE(has_test_split(standard_dataset_kinds(), "pairs:p.tsv?" + options));
  EXPECT_FALSE(has_whole(standard_dataset_kinds(), "pairs:p.tsv?" + options));
}

TEST_F(PairsTest, OtherPairsHaveTheTrainedTokensAndLengths) {
  const std::string encoding = open("abc\tAB\n")->info().encoding;
  const auto other = open("c\tA\nabca\tA\n", "", Split::all, encoding);
  EXPECT_EQ(sample(*other, 0), (PairTokens{7, 0, 0, 1, 3, 0}));
  EXPECT_NE(other->info().note.find("1 line longer than 3 to 2 characters (line 2)"), std::string::npos);
}

TEST_F(PairsTest, OptionsOtherThanTheTrainedOnesAreRefused) {
  const std::string encoding = open("ab\tB\n")->info().encoding;
  EXPECT_NO_THROW(open("ab\tB\n", "split=0&source=2&target=1", Split::all, encoding));
  expect_error([&] { open("ab\tB\n", "source=9", Split::all, encoding); }, ErrorKind::usage,
               {"[pairs] source=9: the model was trained with 2; leave it away"});
}

TEST_F(PairsTest, TheTestFileAloneIsReadWhereItIsWanted) {
  write("t.tsv", {'b', '\t', 'B', '\n'});
  const std::string encoding = open("ab\tB\n")->info().encoding, test = "?test=" + path("t.tsv");
  EXPECT_EQ(open_dataset("pairs:" + path("gone.tsv") + test, Split::test, encoding)->size(), 1);
}

TEST_F(PairsTest, AbsurdlyLongPairsAreLeftOut) {
  const auto dataset = open(std::string(70'000, 'a') + "\tb\nab\tb\n");
  EXPECT_EQ(dataset->size(), 1);
  EXPECT_NE(dataset->info().note.find("longer than 65536 to 1 characters (line 1)"), std::string::npos)
      << dataset->info().note;
}

TEST_F(PairsTest, OtherEncodingsOfTextAreNamed) {
  expect_open_error(std::string("\xff\xfe"
                                "a\0\t\0",
                                6),
                    {"p.tsv' is UTF-16", "iconv -f utf-16"});
  expect_open_error(std::string("a\0b\tc\n", 6), {"p.tsv' is no text: it holds zero bytes"});
}

TEST_F(PairsTest, UnknownCharacterIsNamedWithItsLine) {
  const std::string encoding = open("abc\tAB\n")->info().encoding;
  expect_error([&] { open("a\tA\nä\tA\n", "", Split::all, encoding); }, ErrorKind::data,
               {"[pairs] '", "p.tsv':2: the character 'ä' is not among the 5 that the model knows"});
}

TEST_F(PairsTest, LineWithoutATab) {
  expect_open_error("a\tb\nc d\n", {"p.tsv':2: the line has no tab; want SOURCE<TAB>TARGET"});
}

TEST_F(PairsTest, NoLines) {
  expect_open_error("", {"p.tsv' holds no line"});
  expect_open_error("\n \n\t\n", {"p.tsv' holds no line"});
}

TEST_F(PairsTest, AllTooLong) {
  expect_open_error("abc\td\n", {"every pair is longer than 2 to 1 characters; raise source= and target="},
                    "split=0&source=2");
}

TEST_F(PairsTest, NoUtf8) { expect_open_error("a\tb\xff\n", {"p.tsv' is no UTF-8 text: byte 4"}); }

TEST_F(PairsTest, TooFewToSplit) {
  expect_error([&] { open("a\tb\n", "split=0.5", Split::test); }, ErrorKind::data,
               {"has 1 pairs, of which split=0.5 leaves none for the test split"});
}

TEST_F(PairsTest, MissingFileAndNoFile) {
  expect_error([&] { open_dataset("pairs:" + path("none.tsv"), Split::train); }, ErrorKind::io,
               {"[pairs] no file", "none.tsv"});
  expect_error([&] { open_dataset("pairs:", Split::train); }, ErrorKind::usage, {"[pairs] wants a file"});
}

TEST_F(PairsTest, TestAndSplitExcludeEachOther) {
  expect_open_error("a\tb\n", {"test=x and split=0.1 exclude each other"}, "test=x&split=0.1", ErrorKind::usage);
}

TEST_F(PairsTest, EncodingOfOtherData) {
  expect_error([&] { open("a\tb\n", "", Split::all, R"({"kind":"text"})"); }, ErrorKind::data,
               {"was not trained on pairs of texts"});
}

}  // namespace
}  // namespace weft::data
