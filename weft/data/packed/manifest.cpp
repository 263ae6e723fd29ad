#include "weft/data/packed/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/json_numbers.h"
#include "weft/base/seal.h"
#include "weft/data/dataset/check_samples.h"
#include "weft/data/dataset/dataset_json.h"

namespace weft::data {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::string_view kForms[] = {"samples", "pictures", "tokens"};
constexpr int64_t kMostRecords = int64_t{1} << 40;

ordered_json to_json(const PackedSplit& split) {
  ordered_json root = {{"name", split.name}, {"samples", split.samples}, {"records", split.records}};
  if (split.tokens > 0) root["tokens"] = split.tokens;
  if (!split.class_counts.empty()) root["class_counts"] = split.class_counts;
  root["index"] = split.index_file();
  root["shards"] = ordered_json::array();
  for (const PackedShard& shard : split.shards)
    root["shards"].push_back({{"file", shard.file}, {"records", shard.records}, {"bytes", shard.bytes}});
  return root;
}

PackedSplit split_from(const json& root) {
  PackedSplit split{.name = root.at("name"),
                    .samples = whole_number(root.at("samples")),
                    .records = whole_number(root.at("records"))};
  split.tokens = whole_number(root.value("tokens", json(0)));
  split.class_counts = whole_numbers(root.value("class_counts", json::array()));
  for (const json& shard : root.at("shards"))
    split.shards.push_back({shard.at("file"), whole_number(shard.at("records")), whole_number(shard.at("bytes"))});
  return split;
}

/// Of the folder itself: a damaged manifest must not make weft read elsewhere.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

bool is_sound(const PackedSplit& split, const DatasetInfo& info, PackedForm form) {
  const auto counted = [](int64_t number) { return number >= 0 && number <= kMostRecords; };
  int64_t records = 0;
  for (const PackedShard& shard : split.shards) {
    if (!is_plain_name(shard.file) || !counted(shard.records) || shard.bytes < 0) return false;
    records += shard.records;
    if (!counted(records)) return false;
  }
  const bool in_tokens = form == PackedForm::tokens;
  if (!counted(split.tokens) || (split.tokens > 0) != in_tokens) return false;
  if (in_tokens ? (split.tokens + kTokensPerRecord - 1) / kTokensPerRecord != split.records
                : split.samples != split.records)
    return false;
  const bool classes = split.class_counts.empty() || static_cast<int64_t>(split.class_counts.size()) == info.classes;
  return (split.name == "train" || split.name == "test") && records == split.records && split.records > 0 &&
         split.samples > 0 && counted(split.samples) && classes &&
         std::all_of(split.class_counts.begin(), split.class_counts.end(), counted);
}

bool is_sound(const PackedManifest& manifest) {
  const DatasetInfo& info = manifest.info;
  const bool bounded = has_bounded_size(info.sample_shape) && has_bounded_size(info.target_shape);
  if (!bounded || manifest.splits.empty() || manifest.splits.size() > 2) return false;
  check_info(info);
  if (!info.class_names.empty() && static_cast<int64_t>(info.class_names.size()) != info.classes) return false;
  if (manifest.form == PackedForm::pictures &&
      (info.sample_dtype != DType::u8 || info.target_kind() != TargetKind::sample_class))
    return false;
  if (manifest.form == PackedForm::tokens &&
      (info.sample_dtype != DType::i32 || info.target_shape != info.sample_shape))
    return false;
  const auto channels = static_cast<size_t>(info.sample_dtype == DType::u8 ? info.sample_shape[0] : 0);
  if (manifest.statistics.mean.size() != channels || manifest.statistics.deviation.size() != channels) return false;
  if (!can_be(manifest.statistics)) return false;
  for (const PackedSplit& split : manifest.splits)
    if (!is_sound(split, info, manifest.form)) return false;
  return manifest.splits.front().name == "train" &&
         manifest.splits.back().name == (manifest.splits.size() == 1 ? "train" : "test");
}

}  // namespace

const PackedSplit* PackedManifest::find(std::string_view name) const {
  const auto found = std::find_if(splits.begin(), splits.end(), [&](const auto& split) { return split.name == name; });
  return found == splits.end() ? nullptr : &*found;
}

std::string print_packed_manifest(const PackedManifest& manifest) {
  ordered_json made = {{"from", manifest.source}, {"by", "weft " + manifest.weft}};
  if (manifest.picture_size > 0) made["shorter_side"] = manifest.picture_size;
  if (manifest.quality > 0) made["jpeg_quality"] = manifest.quality;
  ordered_json splits = ordered_json::array();
  for (const PackedSplit& split : manifest.splits) splits.push_back(to_json(split));
  ordered_json root = {{"format", kFormat},
                       {"made", made},
                       {"form", kForms[static_cast<size_t>(manifest.form)]},
                       {"info", ordered_json(to_json(manifest.info))},
                       {"mean", manifest.statistics.mean},
                       {"deviation", manifest.statistics.deviation},
                       {"splits", splits}};
  add_seal(root);
  return root.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

PackedManifest parse_packed_manifest(std::string_view text, const std::string& file) {
  const auto damaged = [&](const std::string& what) {
    fail(ErrorKind::data, "[packed] '{}' is damaged: {}; copy it again, or pack the data again", file, what);
  };
  PackedManifest manifest;
  try {
    const json root = json::parse(text);
    const int64_t format = whole_number(root.at("format"));
    if (format != kFormat)
      fail(ErrorKind::data, "[packed] '{}' has format {}, this weft reads format {}; pack the data again", file, format,
           kFormat);
    check_seal(root, file);
    const auto* const form = std::find(std::begin(kForms), std::end(kForms), root.at("form").get<std::string>());
    if (form == std::end(kForms)) damaged("its form is unknown");
    manifest.form = static_cast<PackedForm>(form - std::begin(kForms));
    const json& made = root.at("made");
    manifest.source = made.at("from");
    const std::string by = made.at("by");
    manifest.weft = by.starts_with("weft ") ? by.substr(5) : by;
    manifest.picture_size = whole_number(made.value("shorter_side", json(0)));
    manifest.quality = whole_number(made.value("jpeg_quality", json(0)));
    manifest.info = info_from_json(root.at("info"), file);
    manifest.statistics.mean = root.at("mean").get<std::vector<float>>();
    manifest.statistics.deviation = root.at("deviation").get<std::vector<float>>();
    for (const json& split : root.at("splits")) manifest.splits.push_back(split_from(split));
    if (!is_sound(manifest)) damaged("its parts do not fit together");
  } catch (const json::exception&) {
    damaged("it does not describe packed data");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    damaged(error.what());  // of check_info()
  }
  return manifest;
}

}  // namespace weft::data
