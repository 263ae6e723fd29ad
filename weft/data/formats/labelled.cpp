#include "weft/data/formats/labelled.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/data/dataset/class_names.h"
#include "weft/data/dataset/stratified_split.h"
#include "weft/data/dataset/test_split.h"
#include "weft/data/dataset/trained_options.h"
#include "weft/data/formats/tab_file.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

using nlohmann::json;

constexpr double kLabelledSplit = 0.2;
constexpr int64_t kUsualLength = 256, kLongestLine = 1 << 16;
constexpr size_t kMostClasses = 10000;
const std::vector<std::string> kLabelledTokens = {"<padding>", "<other>"};

class LabelledTexts : public Dataset {
 public:
  LabelledTexts(DatasetInfo info, std::vector<std::vector<uint16_t>> texts, std::vector<int32_t> labels)
      : Dataset(std::move(info)), texts_(std::move(texts)), labels_(std::move(labels)) {}

  int64_t size() const override { return static_cast<int64_t>(texts_.size()); }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    const std::vector<uint16_t>& text = texts_[static_cast<size_t>(key.index)];
    auto* const tokens = reinterpret_cast<int32_t*>(destination.data());
    int32_t* const end = tokens + info().sample_shape[0];
    std::fill(tokens, end, LabelledEncoding::kPadding);
    std::copy(text.begin(), text.end(), end - text.size());
  }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    std::memcpy(destination.data(), &labels_[static_cast<size_t>(key.index)], sizeof(int32_t));
  }

 private:
  std::vector<std::vector<uint16_t>> texts_;
  std::vector<int32_t> labels_;
};

SpecOptions labelled_options(const DataSpec& spec) {
  return SpecOptions(spec, {"label", "skip", "test", "split", "seed", "unit", "length", "vocabulary"});
}

struct Row {
  std::string_view label, text;
  std::string where;
};

std::vector<Row> rows_of(const TabFile& file, int64_t label) {
  std::vector<Row> rows;
  for (const TabLine& line : file.lines())
    rows.push_back({label == 1 ? line.first : line.second, label == 1 ? line.second : line.first, file.where(line)});
  return rows;
}

LabelledEncoding learn(const SpecOptions& options, const std::vector<Row>& rows, int64_t label,
                       const std::string& path) {
  const TextUnit unit =
      options.choice("unit", "character", {"character", "word"}) == "word" ? TextUnit::word : TextUnit::character;
  std::vector<std::string_view> texts;
  std::set<std::string, std::less<>> classes;
  int64_t longest = 1;
  for (const Row& row : rows) {
    texts.push_back(row.text);
    classes.emplace(row.label);
    longest = std::max(longest, count_units(row.text, unit));
  }
  if (classes.size() < 2 || classes.size() > kMostClasses)
    fail(ErrorKind::data,
         "[labelled] '{}' has {} different label{}, such as '{}'; want LABEL<TAB>TEXT with 2 to {} of them, or say "
         "label=2 where they stand behind the texts",
         path, classes.size(), classes.size() == 1 ? "" : "s", *classes.begin(), kMostClasses);
  const TokenTable::Limits limits{.at_least = 2, .most = options.integer("vocabulary", 20000, 1, 60000)};
  LabelledEncoding encoding{TokenTable::learn(texts, unit, kLabelledTokens, limits, "[labelled] '" + path + "'"),
                            options.integer("length", std::min(longest, kUsualLength), 1, kLongestLine),
                            label,
                            {classes.begin(), classes.end()}};
  sort_classes(encoding.classes, /*decimal_comma=*/false);
  return encoding;
}

int32_t class_of(const Row& row, const std::vector<std::string>& classes) {
  const auto found = std::find(classes.begin(), classes.end(), row.label);
  if (found == classes.end())
    fail(ErrorKind::data, "{}: the label '{}' is none of the {} classes of the training data{}", row.where, row.label,
         classes.size(), suggestion(row.label, classes));
  return static_cast<int32_t>(found - classes.begin());
}

DatasetInfo info_of(const LabelledEncoding& encoding, const std::string& path) {
  DatasetInfo info;
  info.name = printable_utf8(std::filesystem::path(path).stem().string());
  info.sample_shape = Shape{encoding.length};
  info.sample_dtype = DType::i32;
  info.vocabulary = encoding.table.size();
  info.classes = static_cast<int64_t>(encoding.classes.size());
  info.class_names = encoding.classes;
  info.encoding = encoding.to_json();
  return info;
}

}  // namespace

LabelledEncoding LabelledEncoding::from_json(const std::string& text) {
  constexpr const char* kOtherData = "[labelled] the model was not trained on labelled texts; choose other data";
  try {
    const json root = json::parse(text);
    if (root.value("kind", "") != "labelled") fail(ErrorKind::data, "{}", kOtherData);
    LabelledEncoding encoding{
        TokenTable(root.at("vocabulary").get<std::vector<std::string>>(), kLabelledTokens.size(),
                   root.at("unit").get<std::string>() == "word" ? TextUnit::word : TextUnit::character,
                   "[labelled] what the model was trained on"),
        root.at("length"), root.at("label"), root.at("classes").get<std::vector<std::string>>()};
    if (encoding.length < 1 || encoding.length > kLongestLine || encoding.classes.empty())
      fail(ErrorKind::data, "[labelled] what the model was trained on is damaged: it has no length or no classes");
    return encoding;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "{}", kOtherData);
  }
}

std::string LabelledEncoding::to_json() const {
  return json{{"kind", "labelled"},
              {"unit", name_of(table.unit())},
              {"vocabulary", table.names()},
              {"length", length},
              {"label", label},
              {"classes", classes}}
      .dump();
}

int64_t LabelledEncoding::encode(std::string_view text, const std::string& where, int32_t* sample) const {
  const std::vector<uint16_t> tokens = table.encode(text, where, kOther);
  const auto kept = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(tokens.size()), length);
  std::fill_n(sample, length, kPadding);
  std::copy_n(tokens.begin(), kept, sample + (length - kept));
  return static_cast<int64_t>(tokens.size());
}

bool labelled_has_test_split(const DataSpec& spec) {
  return TestSplit(labelled_options(spec), kLabelledSplit).exists();
}

std::unique_ptr<Dataset> open_labelled(const DataSpec& spec, Split split, const std::string& encoding) {
  const SpecOptions options = labelled_options(spec);
  const TestSplit test(options, kLabelledSplit);
  std::optional<LabelledEncoding> known;
  if (!encoding.empty()) {
    known = LabelledEncoding::from_json(encoding);
    require_trained(options, "unit", std::string(name_of(known->table.unit())));
    require_trained(options, "length", known->length);
  }
  const int64_t label = options.integer("label", known ? known->label : 1, 1, 2);
  const std::string path = split == Split::test && test.file() ? *test.file() : spec.argument;
  TabFile file("labelled", path, label == 1 ? "LABEL<TAB>TEXT" : "TEXT<TAB>LABEL",
               options.integer("skip", 0, 0, 1'000'000'000));
  std::vector<Row> rows = rows_of(file, label);
  if (test.divides(split)) {
    std::vector<std::string_view> labels;
    for (const Row& row : rows) labels.push_back(row.label);
    keep_members(rows, test.members(strata_of(labels), split, path, "texts"));
  }
  if (!known) known = learn(options, rows, label, path);
  std::vector<std::vector<uint16_t>> texts;
  std::vector<int32_t> labels;
  std::vector<int64_t> lengths;
  int64_t cut = 0;
  for (const Row& row : rows) {
    texts.push_back(known->table.encode(row.text, row.where, LabelledEncoding::kOther));
    labels.push_back(class_of(row, known->classes));
    lengths.push_back(static_cast<int64_t>(texts.back().size()));
    if (lengths.back() > known->length) {
      texts.back().resize(static_cast<size_t>(known->length));
      ++cut;
    }
  }
  DatasetInfo info = info_of(*known, spec.argument);
  info.note = file.note();
  if (cut > 0)
    info.note +=
        fmt::format("{}'{}': of {} text{} longer than {} {}s the beginning alone counts", info.note.empty() ? "" : "; ",
                    path, cut, cut == 1 ? "" : "s", known->length, name_of(known->table.unit()));
  info.facts = {{"texts", describe_lengths(std::move(lengths), known->table.unit())},
                {"vocabulary", known->table.describe()}};
  return std::make_unique<LabelledTexts>(std::move(info), std::move(texts), std::move(labels));
}

}  // namespace weft::data
