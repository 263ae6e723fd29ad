#include "weft/data/packed/packed.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/data/formats/image_folder.h"
#include "weft/data/formats/picture_options.h"
#include "weft/data/formats/text.h"
#include "weft/data/packed/records.h"
#include "weft/data/pictures/picture_cache.h"

namespace weft::data {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool has_classes(const DatasetInfo& info) {
  return info.target_kind() == TargetKind::sample_class && info.target_dtype == DType::i32 &&
         info.target_shape.rank() == 0;
}

/// What both forms of records share: damaged ones are passed over.
class PackedDataset : public Dataset {
 public:
  /// `numbers`: of the records, where only some are read; `labels`: the model's number of each class, where they
  /// differ.
  PackedDataset(DatasetInfo info, const PackedSplit& split, std::unique_ptr<PackedRecords> records,
                std::optional<std::vector<int64_t>> numbers, std::vector<int32_t> labels,
                std::optional<ChannelStatistics> statistics)
      : Dataset(std::move(info)),
        records_(std::move(records)),
        numbers_(std::move(numbers)),
        labels_(std::move(labels)),
        statistics_(std::move(statistics)),
        counts_(split.class_counts) {
    const int64_t classes = labels_.empty() ? this->info().classes : static_cast<int64_t>(labels_.size());
    for (int64_t number = 0; has_classes(this->info()) && number < records_->size(); ++number)
      if (const int32_t label = records_->entry(number).label; label < 0 || label >= classes)
        fail(ErrorKind::data, "[packed] '{}': record {} has class {}, there are {}; pack the data again",
             this->info().name, number, label, classes);
  }

  int64_t size() const override { return numbers_ ? static_cast<int64_t>(numbers_->size()) : records_->size(); }
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override {
    with_record(key.index, [&](int64_t number) {
      if (has_classes(info())) {
        int32_t label = records_->entry(number).label;
        if (!labels_.empty()) label = labels_[static_cast<size_t>(label)];
        std::memcpy(destination.data(), &label, sizeof label);
      } else {
        const RecordView record = records_->read(number);
        expand(record.target_storage, record.target, destination);
      }
    });
  }
  void will_need(int64_t index) const override { records_->will_need(first_choice(index)); }
  std::string sample_name(int64_t index) const override {
    return std::string(records_->entry(first_choice(index)).name);
  }
  std::vector<int64_t> class_counts() const override {
    const bool as_packed = labels_.empty() && !counts_.empty() && records_->damaged() == 0;
    return as_packed ? counts_ : Dataset::class_counts();
  }
  std::optional<ChannelStatistics> known_statistics() const override { return statistics_; }
  int64_t damaged_samples() const override { return records_->damaged(); }
  std::vector<DamagedSample> list_damaged() const override { return records_->list_damaged(); }
  std::string_view stand_in() const override { return "the next whole record"; }

 protected:
  int64_t first_choice(int64_t index) const { return numbers_ ? (*numbers_)[static_cast<size_t>(index)] : index; }
  const PackedRecords& records() const { return *records_; }
  /// Reads the record of a sample, or, where it is damaged, the next whole one.
  template <typename Read>
  void with_record(int64_t index, const Read& read) const {
    for (;;) {
      const int64_t number = records_->whole_from(first_choice(index));
      try {
        return read(number);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::data) throw;
        records_->note_damaged(number, error.what());
      }
    }
  }

 private:
  std::unique_ptr<PackedRecords> records_;
  std::optional<std::vector<int64_t>> numbers_;
  std::vector<int32_t> labels_;
  std::optional<ChannelStatistics> statistics_;
  std::vector<int64_t> counts_;
};

class PackedSamples : public PackedDataset {
 public:
  using PackedDataset::PackedDataset;
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    with_record(key.index, [&](int64_t number) {
      const RecordView record = records().read(number);
      expand(record.sample_storage, record.sample, destination);
    });
  }
};

class PackedPictures : public PackedDataset {
 public:
  PackedPictures(DatasetInfo info, const PackedSplit& split, std::unique_ptr<PackedRecords> records,
                 std::optional<std::vector<int64_t>> numbers, std::vector<int32_t> labels,
                 std::optional<ChannelStatistics> statistics, const PictureSettings& settings, int64_t cache_bytes,
                 int64_t disk_bytes)
      : PackedDataset(std::move(info), split, std::move(records), std::move(numbers), std::move(labels),
                      std::move(statistics)),
        shorter_side_(settings.resize),
        shortest_decoded_(shortest_decoded(settings.exact, settings.resize)),
        cache_(PackedDataset::records().size(), cache_bytes, disk_bytes) {}
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    const Shape& shape = info().sample_shape;
    copy_middle(*picture(key.index), shape[1], shape[2], destination);
  }
  std::shared_ptr<const Image> picture(int64_t index) const override {
    std::shared_ptr<const Image> image;
    with_record(index, [&](int64_t number) {
      image = cache_.get(number, [&] {
        const RecordView record = records().read(number);
        if (record.sample_storage != Storage::picture) fail(ErrorKind::data, "it holds no picture");
        const Image whole = decode_image(std::string(records().entry(number).name), record.sample, shortest_decoded_);
        return resize_shorter(with_channels(whole, info().sample_shape[0]), shorter_side_);
      });
    });
    return image;
  }
  int64_t cache_bytes_to_come() const override { return cache_.bytes_to_come(decoded_bytes()); }
  int64_t uncached_bytes() const override { return cache_.bytes_left_out(decoded_bytes()); }
  void limit_cache(int64_t bytes) override { cache_.set_limit_bytes(std::min(cache_.limit_bytes(), bytes)); }
  void will_need(int64_t index) const override {
    if (!cache_.keeps(first_choice(index))) PackedDataset::will_need(index);
  }

 private:
  int64_t decoded_bytes() const {
    return cache_.estimate_bytes([this](int64_t index) { return picture(std::min(index, size() - 1)); });
  }

  int64_t shorter_side_, shortest_decoded_;
  PictureCache cache_;
};

/// Of all whole records, in order.
std::vector<uint16_t> read_tokens(const PackedRecords& records, const PackedSplit& split) {
  std::vector<uint16_t> tokens;
  for (const int64_t number : records.verify_all(1)) {
    const RecordView record = records.read(number);
    const auto count = static_cast<size_t>(std::min(kTokensPerRecord, split.tokens - number * kTokensPerRecord));
    std::vector<uint8_t> bytes(2 * count);
    expand(record.sample_storage, record.sample, bytes);
    for (size_t at = 0; at < count; ++at)
      tokens.push_back(static_cast<uint16_t>(bytes[2 * at] | bytes[2 * at + 1] << 8));
  }
  return tokens;
}

std::string describe(const PackedManifest& manifest, const PackedSplit& split) {
  int64_t bytes = 0;
  for (const PackedShard& shard : split.shards) bytes += shard.bytes;
  const std::string what = manifest.form == PackedForm::tokens     ? fmt::format("{} tokens", split.tokens)
                           : manifest.form == PackedForm::pictures ? "pictures"
                                                                   : "samples";
  std::string text = fmt::format("{} in {} shard{} of {}, from {} by weft {}", what, split.shards.size(),
                                 split.shards.size() == 1 ? "" : "s", human_bytes(static_cast<double>(bytes)),
                                 manifest.source, manifest.weft);
  if (manifest.picture_size > 0) text += fmt::format(", shorter side at most {}", manifest.picture_size);
  if (manifest.quality > 0) text += fmt::format(", JPEG quality {}", manifest.quality);
  return text;
}

/// Sets what samples cut from packed pictures are; the classes' numbers in the trained model, or none.
std::vector<int32_t> set_pictures(const PackedManifest& manifest, const DataSpec& spec, const PictureSettings& settings,
                                  DatasetInfo& info) {
  if (manifest.picture_size > 0 && settings.resize > manifest.picture_size)
    fail(ErrorKind::usage,
         "[packed] '{}' holds pictures whose shorter side is {} at most, resize={} wants more; choose a smaller size=, "
         "or pack with --size {}",
         spec.argument, manifest.picture_size, settings.resize, settings.resize);
  std::vector<int32_t> labels;
  info.sample_shape = Shape{settings.channels, settings.size, settings.size};
  info.encoding = print_encoding(settings, settings.classes.empty() ? info.class_names : settings.classes);
  if (!settings.classes.empty() && settings.classes != info.class_names) {
    labels = trained_numbers("packed", info.class_names, settings.classes);
    info.class_names = settings.classes;
    info.classes = static_cast<int64_t>(settings.classes.size());
  }
  return labels;
}

/// Only pictures can be cut anew, and nothing can be encoded anew.
void require_as_packed(const PackedManifest& manifest, const DataSpec& spec, const SpecOptions& options,
                       const std::string& encoding) {
  for (const char* name : {"size", "resize", "channels", kDecodeOption, "cache", "disk"})
    if (options.find(name))
      fail(ErrorKind::usage, "[packed] '{}' holds samples as they are, {}= does nothing; pack '{}' with other options",
           spec.argument, name, manifest.source);
  const auto parsed = [](const std::string& text) { return json::parse(text.empty() ? "{}" : text); };
  if (!encoding.empty() && parsed(encoding) != parsed(manifest.info.encoding))
    fail(ErrorKind::data,
         "[packed] '{}' is encoded otherwise than what the model was trained on; use what it was packed from: {}",
         spec.argument, manifest.source);
}

}  // namespace

PackedManifest read_packed_manifest(const fs::path& directory) {
  std::error_code code;
  if (directory.empty()) fail(ErrorKind::usage, "[packed] wants a folder: write packed:DIR; `weft pack` makes one");
  if (!fs::is_directory(directory, code))
    fail(ErrorKind::io, "[packed] '{}' is no folder{}; `weft pack` makes one", directory.string(),
         code ? ": " + code.message() : "");
  const fs::path file = directory / kPackedManifestFile;
  if (!fs::exists(file, code))
    fail(ErrorKind::io, "[packed] '{}' has no {}; `weft pack` makes such folders", directory.string(),
         kPackedManifestFile);
  return parse_packed_manifest(read_text(file), file.string());
}

bool packed_holds_pictures(const DataSpec& spec) {
  return read_packed_manifest(spec.argument).form == PackedForm::pictures;
}

bool packed_has_test_split(const DataSpec& spec) { return read_packed_manifest(spec.argument).find("test") != nullptr; }

std::unique_ptr<Dataset> open_packed(const DataSpec& spec, Split split, const std::string& encoding) {
  return open_packed(read_packed_manifest(spec.argument), spec, split, encoding);
}

std::unique_ptr<Dataset> open_packed(const PackedManifest& manifest, const DataSpec& spec, Split split,
                                     const std::string& encoding) {
  const SpecOptions options(spec, {"max_bad_records", "size", "resize", "channels", kDecodeOption, "cache", "disk"});
  const PackedSplit* const part = manifest.find(split == Split::test ? "test" : "train");
  if (part == nullptr) fail(ErrorKind::usage, "[packed] '{}' has no test data; pack some", spec.argument);
  const bool pictures = manifest.form == PackedForm::pictures;
  DatasetInfo info = manifest.info;
  PictureSettings settings;
  std::vector<int32_t> labels;
  if (pictures) {
    settings = picture_settings(options, encoding.empty() ? manifest.info.encoding : encoding);
    if (encoding.empty()) settings.classes.clear();
    labels = set_pictures(manifest, spec, settings, info);
  } else {
    require_as_packed(manifest, spec, options, encoding);
  }
  auto records =
      std::make_unique<PackedRecords>(spec.argument, *part, options.text("max_bad_records", kDefaultDamageLimit));
  info.facts = {{"packed", describe(manifest, *part)}};
  info.decoded = manifest.form != PackedForm::tokens;
  // Of test data each sample counts once, so that none can stand for another.
  std::optional<std::vector<int64_t>> numbers;
  if (split == Split::test || manifest.form == PackedForm::tokens) {
    numbers = records->verify_all(1);
    if (numbers->empty() && records->damaged() > 0)
      fail(ErrorKind::data, "[packed] all {} {} records of '{}' are damaged ({}); copy the shards again",
           records->size(), part->name, spec.argument, records->list_damaged().front().message);
    if (records->damaged() > 0)
      info.note =
          fmt::format("{} of {} {} records are damaged and left out: {}{}", records->damaged(), records->size(),
                      part->name, records->list_damaged().front().message, records->damaged() > 1 ? "; ..." : "");
  }
  if (manifest.form == PackedForm::tokens)
    return make_text_windows(std::move(info), read_tokens(*records, *part), split != Split::test);
  const bool same =
      manifest.info.sample_dtype == DType::u8 &&
      (!pictures ||
       (info.sample_shape == manifest.info.sample_shape && settings.exact == decodes_exactly(manifest.info.encoding) &&
        settings.resize == picture_settings(SpecOptions({}, {}), manifest.info.encoding).resize));
  std::optional<ChannelStatistics> statistics;
  if (same && split != Split::test && !manifest.statistics.mean.empty()) statistics = manifest.statistics;
  if (!pictures)
    return std::make_unique<PackedSamples>(std::move(info), *part, std::move(records), std::move(numbers),
                                           std::move(labels), std::move(statistics));
  return std::make_unique<PackedPictures>(std::move(info), *part, std::move(records), std::move(numbers),
                                          std::move(labels), std::move(statistics), settings,
                                          cache_option(options, split), disk_option(options, split));
}

}  // namespace weft::data
