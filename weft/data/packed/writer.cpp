#include "weft/data/packed/writer.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/parallel.h"
#include "weft/data/packed/encode_sample.h"
#include "weft/data/packed/index.h"
#include "weft/data/packed/packed.h"
#include "weft/data/packed/record.h"

namespace weft::data {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTemporaryMark = ".tmp-";  // and the number of the process
constexpr size_t kBufferBytes = 1 << 20;

/// The folder under a temporary name, gone with all that is in it unless it is given its own.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(fs::path final_path) : final_(std::move(final_path)) {
    if (!final_.has_filename()) final_ = final_.parent_path();
    std::error_code code;
    if (fs::exists(final_, code) && (!fs::is_directory(final_, code) || !fs::is_empty(final_, code)))
      fail(ErrorKind::usage, "'{}' holds something already; choose another folder", final_.string());
    if (final_.has_parent_path()) make_directories(final_.parent_path());
    remove_abandoned();
    path_ = final_;
    path_ += fmt::format("{}{}", kTemporaryMark, getpid());
    make_directories(path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const fs::path& path() const { return path_; }
  void keep() {
    sync_directory(path_);
    std::error_code code;
    fs::rename(path_, final_, code);  // an empty folder gives way
    if (code) fail(ErrorKind::io, "cannot rename '{}' to '{}': {}", path_.string(), final_.string(), code.message());
    kept_ = true;
    sync_directory(final_.parent_path());
  }

 private:
  /// What processes have left that were killed.
  void remove_abandoned() const {
    const std::string prefix = final_.filename().string() + std::string(kTemporaryMark);
    std::error_code code;
    const fs::path parent = final_.has_parent_path() ? final_.parent_path() : ".";
    std::vector<fs::path> found;
    for (fs::directory_iterator at(parent, code), end; !code && at != end; at.increment(code)) {
      const std::string name = at->path().filename().string();
      const std::string number = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
      const bool is_number =
          !number.empty() && number.size() < 10 && number.find_first_not_of("0123456789") == std::string::npos;
      if (is_number && kill(std::stoi(number), 0) != 0 && errno == ESRCH) found.push_back(at->path());
    }
    for (const fs::path& path : found) fs::remove_all(path, code);
  }

  fs::path final_, path_;
  bool kept_ = false;
};

/// Splits records over shards.
class ShardWriter {
 public:
  ShardWriter(fs::path directory, PackedSplit& split, int64_t shard_bytes)
      : directory_(std::move(directory)), split_(split), shard_bytes_(shard_bytes) {}

  void add(const EncodedRecord& encoded) {
    const auto number = static_cast<uint64_t>(split_.records++);
    if (!file_) begin();
    PackedShard& shard = split_.shards.back();
    const std::vector<uint8_t> record = write_record(number, encoded.target, encoded.sample);
    index_.add({.offset = static_cast<uint64_t>(shard.bytes),
                .bytes = static_cast<uint32_t>(record.size()),
                .shard = static_cast<uint32_t>(split_.shards.size() - 1),
                .label = encoded.label,
                .name = encoded.name});
    buffer_.insert(buffer_.end(), record.begin(), record.end());
    if (buffer_.size() >= kBufferBytes) flush();
    ++shard.records;
    shard.bytes += static_cast<int64_t>(record.size());
    bytes_ += record.size();
    if (shard.bytes >= shard_bytes_) end();
  }
  void finish() {
    if (file_) end();
    AtomicFile index(directory_ / split_.index_file());
    const std::vector<uint8_t> bytes = index_.finish();
    index.write(bytes.data(), bytes.size());
    index.commit();
  }
  uint64_t bytes() const { return bytes_; }

 private:
  void begin() {
    split_.shards.push_back({fmt::format("{}-{:05}.shard", split_.name, split_.shards.size()), 0, 0});
    file_ = std::make_unique<AtomicFile>(directory_ / split_.shards.back().file);
  }
  void flush() {
    file_->write(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  void end() {
    flush();
    file_->commit();
    file_.reset();
  }

  fs::path directory_;
  PackedSplit& split_;
  const int64_t shard_bytes_;
  std::unique_ptr<AtomicFile> file_;
  std::vector<uint8_t> buffer_;  // for few calls of the system
  PackedIndexWriter index_;
  uint64_t bytes_ = 0;
};

/// One call of pack().
class Packer {
 public:
  Packer(const PackOptions& options, const Encoder& encoder, const fs::path& directory, PackResult& result)
      : options_(options), encoder_(encoder), directory_(directory), result_(result) {}

  void expect(int64_t records) { progress_.of += records; }

  /// False where a stop was requested.
  bool pack_split(const Dataset& dataset, const std::string& name) {
    PackedSplit split{.name = name, .tokens = static_cast<int64_t>(dataset.tokens().size())};
    const DatasetInfo& info = dataset.info();
    const bool classes = info.target_kind() == TargetKind::sample_class && info.target_dtype == DType::i32 &&
                         info.target_shape.rank() == 0;
    if (classes) split.class_counts.resize(static_cast<size_t>(info.classes));
    const int64_t records = records_of(dataset, encoder_);
    const int64_t limit = parse_damage_limit(options_.max_bad_records, records, "--max-bad-records");
    ShardWriter writer(directory_, split, options_.shard_bytes);
    std::vector<std::string> bad;
    // A few at a time, so that memory stays small, in order, so that the result depends on no timing.
    const int64_t group = 16 * options_.threads;
    std::vector<EncodedRecord> encoded(static_cast<size_t>(group));
    for (int64_t begin = 0; begin < records; begin += group) {
      if (options_.stop_requested && options_.stop_requested()) return false;
      const int64_t count = std::min(group, records - begin);
      encode(dataset, begin, count, encoded);
      for (int64_t at = 0; at < count; ++at) {
        const EncodedRecord& record = encoded[static_cast<size_t>(at)];
        if (record.error.empty()) {
          writer.add(record);
          if (classes) ++split.class_counts[static_cast<size_t>(record.label)];
        } else {
          bad.push_back(record.error);
          require_few(bad, limit, name);
        }
      }
      progress_.records += count;
      if (options_.progress) options_.progress({progress_.records, progress_.of, result_.bytes + writer.bytes()});
    }
    if (split.records == 0) fail(ErrorKind::data, "no sample of the {} split can be read; nothing was packed", name);
    writer.finish();
    split.samples = encoder_.form == PackedForm::tokens ? dataset.size() : split.records;
    result_.bytes += writer.bytes();
    result_.left_out += static_cast<int64_t>(bad.size());
    result_.manifest.splits.push_back(std::move(split));
    return true;
  }

 private:
  void encode(const Dataset& dataset, int64_t begin, int64_t count, std::vector<EncodedRecord>& encoded) const {
    std::mutex mutex;
    std::optional<std::string> broken;
    parallel_for(options_.threads, count, 1, [&](int64_t first, int64_t last) {
      try {
        for (int64_t at = first; at < last; ++at)
          encoded[static_cast<size_t>(at)] = encode_record(dataset, encoder_, begin + at);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        broken = error.what();
      }
    });
    if (broken) fail(ErrorKind::internal, "packing failed: {}; please report this with the command you ran", *broken);
  }

  void require_few(const std::vector<std::string>& bad, int64_t limit, const std::string& split) const {
    if (static_cast<int64_t>(bad.size()) <= limit) {
      if (options_.note) options_.note(bad.back() + "; left out");
      return;
    }
    fail(ErrorKind::data,
         "{} samples of the {} split cannot be read, {} may be (--max-bad-records): {}; mend them (`weft data` names "
         "all), or raise the limit",
         bad.size(), split, limit, bad.back());
  }

  const PackOptions& options_;
  const Encoder& encoder_;
  const fs::path& directory_;
  PackResult& result_;
  PackProgress progress_;
};

}  // namespace

PackResult pack(const Dataset& training, const Dataset* test, const fs::path& directory,
                const PackOptions& options) try {
  const Encoder encoder = make_encoder(training, options.picture_size, options.quality);
  TemporaryDirectory temporary(directory);
  PackResult result;
  result.manifest.info = training.info();
  result.manifest.form = encoder.form;
  result.manifest.source = options.source;
  result.manifest.weft = options.weft;
  result.manifest.picture_size = encoder.size;
  result.manifest.quality = encoder.quality > 0 ? encoder.quality : encoder.size > 0 ? kUsualQuality : 0;
  Packer packer(options, encoder, temporary.path(), result);
  packer.expect(records_of(training, encoder) + (test != nullptr ? records_of(*test, encoder) : 0));
  if (!packer.pack_split(training, "train")) return result;
  if (test != nullptr && !packer.pack_split(*test, "test")) return result;
  if (training.info().sample_dtype == DType::u8) {
    // Of what was packed, which differs from what was read where pictures were made smaller or left out.
    const DataSpec spec{.kind = "packed", .argument = temporary.path().string(), .options = {}};
    const bool changed = encoder.size > 0 || encoder.quality > 0 || result.left_out > 0;
    result.manifest.statistics =
        changed ? channel_statistics(*open_packed(result.manifest, spec, Split::train, ""), options.threads)
                : channel_statistics(training, options.threads);
  }
  write_atomically(temporary.path() / kPackedManifestFile, print_packed_manifest(result.manifest));
  temporary.keep();
  result.finished = true;
  return result;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::io) throw;
  throw Error(error.kind(), fmt::format("{}; nothing was left of '{}'", error.what(), directory.string()));
}

}  // namespace weft::data
