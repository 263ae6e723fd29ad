#include "weft/data/formats/pairs.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "weft/base/error.h"
#include "weft/data/dataset/test_split.h"
#include "weft/data/dataset/trained_options.h"
#include "weft/data/formats/tab_file.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

using nlohmann::json;

constexpr double kPairSplit = 0.1;
constexpr int64_t kLongestPair = 1 << 16;
const std::vector<std::string> kPairTokens = {"<padding>", "<start>", "<end>"};

using Tokens = std::vector<uint16_t>;
struct LinePair {
  Tokens source, target;
};

class PairDataset : public Dataset {
 public:
  PairDataset(DatasetInfo info, std::vector<LinePair> pairs) : Dataset(std::move(info)), pairs_(std::move(pairs)) {}

  int64_t size() const override { return static_cast<int64_t>(pairs_.size()); }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    const LinePair& pair = pairs_[static_cast<size_t>(key.index)];
    auto* tokens = reinterpret_cast<int32_t*>(destination.data());
    std::fill_n(tokens, info().sample_shape[0], PairEncoding::kPadding);
    std::copy(pair.source.begin(), pair.source.end(), tokens);
    tokens[info().source_length] = PairEncoding::kStart;
    std::copy(pair.target.begin(), pair.target.end(), tokens + info().source_length + 1);
  }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    const Tokens& target = pairs_[static_cast<size_t>(key.index)].target;
    auto* tokens = reinterpret_cast<int32_t*>(destination.data());
    std::fill_n(tokens, info().target_shape[0], kIgnoredTarget);
    *std::copy(target.begin(), target.end(), tokens) = PairEncoding::kEnd;
  }

 private:
  std::vector<LinePair> pairs_;
};

SpecOptions pair_options(const DataSpec& spec) {
  return SpecOptions(spec, {"test", "split", "seed", "source", "target"});
}

constexpr const char* kFields = "SOURCE<TAB>TARGET";

/// The longest source and the longest target of a file, in characters.
void grow(const TabFile& file, int64_t& source, int64_t& target) {
  const auto longest = [&](std::string_view text, int64_t& length) {
    length = std::max(length, count_units(text, TextUnit::character));
  };
  for (const TabLine& line : file.lines()) {
    longest(line.first, source);
    longest(line.second, target);
  }
}

/// From the file alone, or with the test file beside it: lengths must do for both.
PairEncoding learn(const SpecOptions& options, const TabFile& file, const TabFile* test) {
  std::vector<std::string_view> texts;
  int64_t source = 0, target = 0;
  for (const TabFile* part : {&file, test}) {
    if (part == nullptr) continue;
    grow(*part, source, target);
    for (const TabLine& line : part->lines()) texts.insert(texts.end(), {line.first, line.second});
  }
  source = options.integer("source", std::min(source, kLongestPair), 1, kLongestPair);
  target = options.integer("target", std::min(target, kLongestPair), 1, kLongestPair);
  return {TokenTable::learn(texts, TextUnit::character, kPairTokens, {}, "[pairs] '" + file.path() + "'"), source,
          target};
}

/// The pairs of all lines, without those that are too long.
std::vector<LinePair> encode(TabFile& file, const PairEncoding& encoding) {
  std::vector<LinePair> pairs;
  for (const TabLine& line : file.lines()) {
    LinePair pair{encoding.table.encode(line.first, file.where(line)),
                  encoding.table.encode(line.second, file.where(line))};
    const auto source = static_cast<int64_t>(pair.source.size()), target = static_cast<int64_t>(pair.target.size());
    if (source > encoding.source || target > encoding.target)
      file.leave_out(fmt::format("longer than {} to {} characters", encoding.source, encoding.target), line.number);
    else
      pairs.push_back(std::move(pair));
  }
  if (pairs.empty())
    fail(ErrorKind::data,
         "[pairs] '{}': every pair is longer than {} to {} characters; raise source= and target=", file.path(),
         encoding.source, encoding.target);
  return pairs;
}

}  // namespace

PairEncoding PairEncoding::from_json(const std::string& text) {
  const std::string name = "[pairs] what the model was trained on";
  try {
    const json root = json::parse(text);
    if (root.value("kind", "") != "pairs")
      fail(ErrorKind::data, "[pairs] the model was not trained on pairs of texts; choose other data");
    PairEncoding encoding{TokenTable(root.at("vocabulary").get<std::vector<std::string>>(), kPairTokens.size(),
                                     TextUnit::character, name),
                          root.at("source"), root.at("target")};
    if (std::min(encoding.source, encoding.target) < 1 || std::max(encoding.source, encoding.target) > kLongestPair)
      fail(ErrorKind::data, "{}: lengths {} and {} are out of range", name, encoding.source, encoding.target);
    return encoding;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "[pairs] the model was not trained on pairs of texts; choose other data");
  }
}

std::string PairEncoding::to_json() const {
  return json{{"kind", "pairs"}, {"vocabulary", table.names()}, {"source", source}, {"target", target}}.dump();
}

bool pairs_have_test_split(const DataSpec& spec) { return TestSplit(pair_options(spec), kPairSplit).exists(); }

std::unique_ptr<Dataset> open_pairs(const DataSpec& spec, Split split, const std::string& encoding) {
  const SpecOptions options = pair_options(spec);
  const TestSplit test(options, kPairSplit);
  std::optional<PairEncoding> known;
  if (!encoding.empty()) {
    known = PairEncoding::from_json(encoding);
    require_trained(options, "source", known->source);
    require_trained(options, "target", known->target);
  }
  const bool apart = split == Split::test && test.file();
  std::optional<TabFile> file;
  file.emplace("pairs", known && apart ? *test.file() : spec.argument, kFields);
  if (!known) {
    std::optional<TabFile> other;
    if (test.file()) other.emplace("pairs", *test.file(), kFields);
    known = learn(options, *file, other ? &*other : nullptr);
    if (apart) file.emplace("pairs", *test.file(), kFields);
  }
  std::vector<LinePair> pairs = encode(*file, *known);
  keep_members(pairs, test.members(std::vector<int32_t>(pairs.size(), 0), split, file->path(), "pairs"));
  DatasetInfo info;
  info.name = printable_utf8(std::filesystem::path(spec.argument).stem().string());
  info.sample_shape = Shape{known->source + known->target_steps()};
  info.target_shape = Shape{known->target_steps()};
  info.sample_dtype = info.target_dtype = DType::i32;
  info.source_length = known->source;
  info.classes = known->table.size();
  info.class_names = known->table.names();
  info.task = "translation";
  info.note = file->note();
  const auto lengths_of = [&](Tokens LinePair::*part) {
    std::vector<int64_t> lengths;
    for (const LinePair& pair : pairs) lengths.push_back(static_cast<int64_t>((pair.*part).size()));
    return describe_lengths(std::move(lengths), known->table.unit());
  };
  info.facts = {{"sources", lengths_of(&LinePair::source)},
                {"targets", lengths_of(&LinePair::target)},
                {"vocabulary", known->table.describe()}};
  info.encoding = known->to_json();
  return std::make_unique<PairDataset>(std::move(info), std::move(pairs));
}

}  // namespace weft::data
