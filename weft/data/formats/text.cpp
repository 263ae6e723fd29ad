#include "weft/data/formats/text.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/json_numbers.h"
#include "weft/base/rng.h"
#include "weft/data/texts/text_file.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

using nlohmann::json;

constexpr double kTextSplit = 0.1;
constexpr int64_t kDefaultLength = 128;
constexpr size_t kMostCharacters = 65536;

/// Windows of a text.
class TextDataset : public Dataset {
 public:
  TextDataset(DatasetInfo info, std::vector<uint16_t> tokens, bool at_random)
      : Dataset(std::move(info)),
        tokens_(std::move(tokens)),
        length_(this->info().sample_shape[0]),
        at_random_(at_random) {}

  int64_t size() const override { return (static_cast<int64_t>(tokens_.size()) - 1) / length_; }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override { copy(offset(key), destination); }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    copy(offset(key) + 1, destination);
  }
  std::span<const uint16_t> tokens() const override { return tokens_; }

 private:
  /// Of a window with the character after it.
  int64_t offset(const SampleKey& key) const {
    if (!at_random_) return key.index * length_;
    RandomStream random(key.pass, static_cast<uint64_t>(key.index));
    const auto places = static_cast<uint64_t>(static_cast<int64_t>(tokens_.size()) - length_);
    const uint64_t bits = uint64_t{random.bits()} << 32 | random.bits();
    return static_cast<int64_t>(bits % places);
  }
  void copy(int64_t begin, std::span<uint8_t> destination) const {
    std::copy_n(tokens_.begin() + begin, length_, reinterpret_cast<int32_t*>(destination.data()));
  }

  std::vector<uint16_t> tokens_;
  int64_t length_;
  bool at_random_;
};

int64_t trained_length(const std::string& encoding) {
  const json root = json::parse(encoding, nullptr, /*allow_exceptions=*/false);
  const bool known = root.is_object() && root.contains("length") && root["length"].is_number_integer();
  return known ? whole_number(root["length"]) : kDefaultLength;
}

SpecOptions options_of(const DataSpec& spec) { return SpecOptions(spec, {"length", "split"}); }

}  // namespace

Vocabulary Vocabulary::learn(std::string_view text, const std::string& name) {
  std::set<uint32_t> points;
  std::vector<bool> ascii(128);
  for (size_t at = 0; at < text.size();) {
    const uint32_t point = next_code_point(text, at, name);
    if (point < 128)
      ascii[point] = true;
    else
      points.insert(point);
  }
  for (uint32_t point = 0; point < 128; ++point)
    if (ascii[point]) points.insert(point);
  if (points.size() > kMostCharacters)
    fail(ErrorKind::data, "[text] '{}' holds {} different characters, more than any script; is it text?", name,
         points.size());
  Vocabulary vocabulary;
  for (const uint32_t point : points) {
    vocabulary.characters_.push_back(utf8_of(point));
  }
  vocabulary.index();
  return vocabulary;
}

void Vocabulary::index() {
  for (size_t token = 0; token < characters_.size(); ++token) {
    size_t at = 0;
    tokens_.emplace_back(next_code_point(characters_[token], at, "vocabulary"), static_cast<uint16_t>(token));
  }
  std::sort(tokens_.begin(), tokens_.end());
}

std::string Vocabulary::to_json() const { return json{{"kind", "text"}, {"vocabulary", characters_}}.dump(); }

Vocabulary Vocabulary::from_json(const std::string& text) {
  try {
    const json root = json::parse(text);
    Vocabulary vocabulary;
    vocabulary.characters_ = root.at("vocabulary").get<std::vector<std::string>>();
    if (vocabulary.characters_.size() > kMostCharacters) fail(ErrorKind::data, "[text] the vocabulary is damaged");
    for (const std::string& character : vocabulary.characters_)
      if (character.empty()) fail(ErrorKind::data, "[text] the vocabulary is damaged: it holds an empty character");
    vocabulary.index();
    return vocabulary;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "[text] the model was not trained on text; choose other data");
  }
}

std::vector<uint16_t> Vocabulary::encode(std::string_view text, const std::string& name) const {
  std::vector<uint16_t> tokens;
  tokens.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t point = next_code_point(text, at, name);
    const auto found = std::lower_bound(tokens_.begin(), tokens_.end(), std::pair(point, uint16_t{0}));
    if (found == tokens_.end() || found->first != point) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
      const size_t newline = text.rfind('\n', begin);
      const size_t column = begin - (newline == text.npos || begin == 0 ? 0 : newline + 1) + 1;
      fail(ErrorKind::data,
           "[text] '{}':{}:{}: the character '{}' (U+{:04X}) is not among the {} that the model knows; "
           "replace it",
           name, line, column, text.substr(begin, at - begin), point, size());
    }
    tokens.push_back(found->second);
  }
  return tokens;
}

bool text_has_test_split(const DataSpec& spec) { return options_of(spec).fraction("split", kTextSplit) > 0; }

std::unique_ptr<Dataset> make_text_windows(DatasetInfo info, std::vector<uint16_t> tokens, bool at_random) {
  if (static_cast<int64_t>(tokens.size()) <= info.sample_shape[0])
    fail(ErrorKind::data, "[text] '{}' has {} tokens, a sample takes {} and the one after them; give a longer text",
         info.name, tokens.size(), info.sample_shape[0]);
  return std::make_unique<TextDataset>(std::move(info), std::move(tokens), at_random);
}

std::unique_ptr<Dataset> open_text(const DataSpec& spec, Split split, const std::string& encoding) {
  const SpecOptions options = options_of(spec);
  const int64_t usual = encoding.empty() ? kDefaultLength : trained_length(encoding);
  const int64_t length = options.integer("length", usual, 1, 1 << 20);
  const double fraction = options.fraction("split", kTextSplit);
  const std::string& path = spec.argument;
  std::error_code code;
  if (path.empty()) fail(ErrorKind::usage, "[text] wants a file: write text:FILE");
  if (!std::filesystem::exists(path, code))
    fail(ErrorKind::io, "[text] no file '{}'{}; check the path", path, code ? ": " + code.message() : "");
  const std::string text = read_text_file(path);
  const Vocabulary vocabulary = encoding.empty() ? Vocabulary::learn(text, path) : Vocabulary::from_json(encoding);
  std::vector<uint16_t> tokens = vocabulary.encode(text, path);
  const auto count = static_cast<int64_t>(tokens.size());
  const auto tests = split == Split::all ? 0 : static_cast<int64_t>(fraction * static_cast<double>(count));
  const bool of_test = split == Split::test;
  const auto border = tokens.begin() + (count - tests);
  if (of_test)
    tokens.erase(tokens.begin(), border);
  else
    tokens.erase(border, tokens.end());
  if (static_cast<int64_t>(tokens.size()) <= length)
    fail(ErrorKind::data,
         "[text] '{}' has {} characters{}, a sample takes {} and the one after them; give a longer text or "
         "a smaller length=",
         path, tokens.size(), of_test ? " in its test part" : "", length);
  DatasetInfo info;
  info.name = printable_utf8(std::filesystem::path(path).stem().string());
  info.sample_shape = info.target_shape = Shape{length};
  info.classes = vocabulary.size();
  info.class_names = vocabulary.characters();
  info.task = "language_model";
  info.sample_dtype = info.target_dtype = DType::i32;
  json learned = json::parse(vocabulary.to_json());
  learned["length"] = length;
  info.encoding = learned.dump();
  return std::make_unique<TextDataset>(std::move(info), std::move(tokens), split == Split::train);
}

}  // namespace weft::data
