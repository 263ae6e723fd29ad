// Texts as data sets: vocabulary, windows, and what is said about texts that cannot be learned.
#include "weft/data/formats/text.h"

#include <set>

#include "tests/data/idx_bytes.h"
#include "weft/data/load/loader.h"
#include "weft/data/open_dataset.h"

namespace weft::data {
namespace {

class TextTest : public FilesTest {
 protected:
  std::unique_ptr<Dataset> open(const std::string& text, const std::string& options, Split split = Split::train,
                                const std::string& encoding = "") {
    write("t.txt", Bytes(text.begin(), text.end()));
    return open_dataset("text:" + path("t.txt") + "?" + options, split, encoding);
  }
  void expect_open_error(const std::string& text, const std::string& options, const std::vector<std::string>& parts,
                         Split split = Split::train) {
    expect_error([&] { open(text, options, split); }, ErrorKind::data, parts);
  }
  /// Sample, then target, as text.
  static std::pair<std::string, std::string> window(const Dataset& dataset, const SampleKey& key) {
    std::vector<int32_t> tokens(static_cast<size_t>(dataset.info().sample_shape[0]));
    const auto as_text = [&] {
      std::string text;
      for (const int32_t token : tokens) text += dataset.info().class_names[static_cast<size_t>(token)];
      return text;
    };
    const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(tokens.data()), 4 * tokens.size());
    dataset.get(key, bytes);
    std::string sample = as_text();
    dataset.get_target(key, bytes);
    return {sample, as_text()};
  }
};

TEST_F(TextTest, VocabularyIsTheSortedCharacters) {
  const auto dataset = open("banana, für Ü€😀", "length=2&split=0");
  EXPECT_EQ(dataset->info().class_names,
            (std::vector<std::string>{" ", ",", "a", "b", "f", "n", "r", "Ü", "ü", "€", "😀"}));
  EXPECT_EQ(dataset->info().classes, 11);
  EXPECT_EQ(dataset->info().task, "language_model");
}

TEST_F(TextTest, TestWindowsLieSideBySideAndTargetsOneAhead) {
  const auto dataset = open("0123456789abcdefghij", "length=3&split=0.5", Split::test);
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(window(*dataset, {0, 7}), (std::pair<std::string, std::string>{"abc", "bcd"}));
  EXPECT_EQ(window(*dataset, {2, 8}), (std::pair<std::string, std::string>{"ghi", "hij"}));
}

TEST_F(TextTest, TrainingWindowsAreDrawnAnewInEachPassAndReachBothEnds) {
  const std::string text = "0123456789abcdefghij";
  const auto dataset = open(text, "length=3&split=0.5");
  std::set<std::string> seen;
  for (uint64_t pass = 0; pass < 100; ++pass)
    for (int64_t index = 0; index < dataset->size(); ++index) {
      const auto [sample, target] = window(*dataset, {index, pass});
      EXPECT_EQ(window(*dataset, {index, pass}).first, sample);
      EXPECT_EQ(text.find(sample) + 1, text.find(target));
      seen.insert(sample);
    }
  EXPECT_EQ(seen, (std::set<std::string>{"012", "123", "234", "345", "456", "567", "678"}))
      << "all that have a next character before the test part";
}

TEST_F(TextTest, LoaderGivesTokensByEpoch) {
  const auto dataset = open("the quick brown fox jumps over the lazy dog and runs away", "length=5&split=0");
  Loader loader(
      *dataset,
      {.batch = 4, .seed = 3, .shuffle = true, .drop_last = true, .augment = {}, .mix = {}, .statistics = {}});
  const Batch first = loader.load_batch(0, 0), again = loader.load_batch(0, 0), later = loader.load_batch(1, 0);
  EXPECT_EQ(first.samples.dtype(), DType::i32);
  EXPECT_EQ(first.samples.shape(), Shape({4, 5}));
  EXPECT_EQ(first.targets.shape(), Shape({4, 5}));
  const auto tokens = [](const Tensor& t) {
    return std::vector<int32_t>(t.data_as<int32_t>(), t.data_as<int32_t>() + t.elements());
  };
  EXPECT_EQ(tokens(first.samples), tokens(again.samples));
  EXPECT_NE(tokens(first.samples), tokens(later.samples));
}

TEST_F(TextTest, OtherTextsHaveTheTrainedVocabularyAndLength) {
  const std::string encoding = open("abcabc", "length=2&split=0")->info().encoding;
  const auto other = open("ccab", "split=0", Split::all, encoding);
  EXPECT_EQ(other->info().classes, 3);
  EXPECT_EQ(window(*other, {0, 0}), (std::pair<std::string, std::string>{"cc", "ca"}));
}

TEST_F(TextTest, AByteOrderMarkIsNoCharacter) {
  EXPECT_EQ(open("\xef\xbb\xbf"
                 "abc",
                 "length=1&split=0")
                ->info()
                .class_names,
            (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(TextTest, UnknownCharacterIsNamedWithItsPlace) {
  const std::string encoding = open("abc\nabc", "length=2&split=0")->info().encoding;
  expect_error([&] { open("ab\ncäb", "split=0", Split::all, encoding); }, ErrorKind::data,
               {"t.txt':2:2: the character 'ä' (U+00E4) is not among the 4"});
}

TEST_F(TextTest, ShorterThanASample) {
  expect_open_error("short", "length=5&split=0", {"t.txt' has 5 characters, a sample takes 5 and the one after them"});
  expect_open_error("a longer text", "length=4", {"1 characters in its test part"}, Split::test);
}

TEST_F(TextTest, NoUtf8) {
  expect_open_error("abc\xff", "length=1", {"t.txt' is no UTF-8 text: byte 4 (0xff)", "iconv"});
  expect_open_error("ab\xc3", "length=1", {"byte 3 (0xc3)"});            // cut off
  expect_open_error("\xc0\xaf", "length=1", {"byte 1 (0xc0)"});          // longer than need be
  expect_open_error("\xed\xa0\x80", "length=1", {"byte 1 (0xed)"});      // a surrogate
  expect_open_error("\xf5\x80\x80\x80", "length=1", {"byte 1 (0xf5)"});  // past the last code point
}

TEST_F(TextTest, EmptyFile) { expect_open_error("", "length=1", {"has 0 characters"}); }

TEST_F(TextTest, MissingFile) {
  expect_error([&] { open_dataset("text:" + path("none.txt"), Split::train); }, ErrorKind::io, {"no file", "none.txt"});
}

TEST_F(TextTest, CroppingIsForImages) {
  const auto dataset = open("abcabcabc", "length=2&split=0");
  AugmentOptions augment;
  augment.flip = Flip::random;
  expect_error([&] { Loader(*dataset, {.batch = 1, .augment = augment, .mix = {}, .statistics = {}}); },
               ErrorKind::usage, {"[augment] 't' holds tokens", "leave [augment] away"});
}

}  // namespace
}  // namespace weft::data
