// Characters and words as tokens.
#include "weft/data/texts/token_table.h"

#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"

namespace weft::data {
namespace {

TokenTable words(const std::vector<std::string_view>& texts, const TokenTable::Limits& limits = {}) {
  return TokenTable::learn(texts, TextUnit::word, {"<padding>", "<other>"}, limits, "t");
}

TEST(TokenTable, WordsAreCutAtBlanksAndMarks) {
  const TokenTable table = words({"Don't  stop, well-known\tÜber_all!"});
  EXPECT_EQ(table.names(),
            (std::vector<std::string>{"<padding>", "<other>", "!", ",", "Don't", "stop", "well-known", "Über_all"}));
}

TEST(TokenTable, RareWordsAndTheLeastFrequentGo) {
  EXPECT_EQ(words({"a b a c b a"}, {.at_least = 2}).names(),
            (std::vector<std::string>{"<padding>", "<other>", "a", "b"}));
  EXPECT_EQ(words({"a b a c b a"}, {.most = 1}).names(), (std::vector<std::string>{"<padding>", "<other>", "a"}));
  EXPECT_EQ(words({"c b"}, {.most = 1}).names().back(), "b") << "the first of equally frequent ones";
}

TEST(TokenTable, UnknownUnitsBecomeATokenOrAnError) {
  const TokenTable table = words({"a b"});
  EXPECT_EQ(table.encode("b x a", "t", 1), (std::vector<uint16_t>{3, 1, 2}));
  expect_error([&] { table.encode("b x", "[t] 'f':3"); }, ErrorKind::data,
               {"[t] 'f':3: the word 'x' is not among the 2 that the model knows; replace it"});
}

TEST(TokenTable, DecodesWithoutTheSpecialOnes) {
  EXPECT_EQ(words({"b a"}).decode({0, 3, 1, 2, 0}), "b a");
  const TokenTable letters = TokenTable::learn({"für"}, TextUnit::character, {"<blank>"}, {}, "t");
  EXPECT_EQ(letters.decode({1, 0, 3}), "fü");
}

TEST(TokenTable, RefusesADamagedVocabulary) {
  const auto make = [](std::vector<std::string> names) { TokenTable(std::move(names), 1, TextUnit::word, "x"); };
  expect_error([&] { make({"<blank>", "a", "a"}); }, ErrorKind::data, {"x: the vocabulary is damaged: 'a'"});
  expect_error([&] { make({"<blank>", ""}); }, ErrorKind::data, {"twice or empty"});
  expect_error([&] { make({"<blank>"}); }, ErrorKind::data, {"x: a vocabulary of 0 words"});
}

TEST(TokenTable, DescribesLengths) {
  EXPECT_EQ(describe_lengths({3, 1, 2, 2}, TextUnit::word), "1 to 3 words, 99 % up to 2, mean 2.0");
}

}  // namespace
}  // namespace weft::data
