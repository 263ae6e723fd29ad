// A set of samples with their targets: what training and evaluation read from, whatever files it came from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/data/pictures/image.h"
#include "weft/tensor/dtype.h"
#include "weft/tensor/shape.h"

namespace weft::data {

/// What a target holds that does not count: cross_entropy's usual ignore_index.
constexpr int32_t kIgnoredTarget = -100;

enum class Split {
  train,
  test,
  all,  // everything, where the files do not come in two parts
};
std::string_view name_of(Split split);

/// What the targets of samples are, whatever is learned from them.
enum class TargetKind {
  sample_class,   // one class per sample
  values,         // real values per sample
  next_tokens,    // the token after each token
  sequence,       // of tokens, for a sequence of tokens
  text,           // the letters in an image
  pixel_classes,  // a class per pixel
};

/// Mean and standard deviation of the channels of images, scaled to [0, 1].
struct ChannelStatistics {
  std::vector<float> mean, deviation;
};

/// Whether pixels can have them: as many means as deviations, all finite, deviations above 0, none beyond a million.
bool can_be(const ChannelStatistics& statistics);

/// Of the values that a regression predicts. In double: a time in seconds has more digits than a float.
struct TargetStatistics {
  std::vector<double> mean, deviation;
};

struct DatasetInfo {
  std::string name;                           // "fashion-mnist", for messages and summaries
  Shape sample_shape;                         // (C,H,W) images, (F) numbers, (T) tokens
  int64_t classes = 0;                        // or the vocabulary, or how many values a regression predicts
  std::vector<std::string> class_names = {};  // one per class, token or value, or empty where the files have none
  std::string task = "classification";        // the name of what is learned: an entry of the library (library/task.h)
  DType sample_dtype = DType::u8;             // u8: images; f32: numbers as the model reads them; i32: tokens
  DType target_dtype = DType::i32;
  // Of one sample: () a class, (K) values, (T) tokens, (L) the letters of a text, which zeros fill up, (H,W) classes of
  // pixels. Translation and segmentation: targets of kIgnoredTarget do not count.
  Shape target_shape{};
  int64_t vocabulary = 0;      // of the tokens in a sample, where `classes` counts something else
  int64_t source_length = 0;   // translation: the first tokens of a sample; the others are the translation so far
  TargetStatistics targets{};  // regression: targets are (value - mean) / deviation
  bool decoded = false;        // get() reads and decodes files: worth several workers, no pass without need
  std::string note{};          // what the user should know about the files, such as how many were left out
  std::vector<std::pair<std::string, std::string>> facts{};  // what `weft data` tells of the files: name and text
  std::string encoding{};  // JSON: how files become samples, as learned from the training split; or empty

  /// As shapes and types of samples and targets say.
  TargetKind target_kind() const;
  /// How many targets a sample has, those that do not count among them: what the loss is a mean over.
  int64_t predictions_per_sample() const;
  /// How many answers of a sample are right or wrong: what accuracy is a share of. A sequence is right as a whole.
  int64_t answers_per_sample() const { return target_kind() == TargetKind::sequence ? 1 : predictions_per_sample(); }
  bool has_ignored_targets() const {
    return target_kind() == TargetKind::sequence || target_kind() == TargetKind::pixel_classes;
  }
  /// What a rate counts: "images", "rows" or "tokens", and how many of them a sample is.
  std::string_view item() const;
  int64_t items_per_sample() const { return sample_dtype == DType::i32 ? sample_shape.elements() : 1; }
  int64_t sample_bytes() const { return byte_size(sample_dtype, sample_shape.elements()); }
  int64_t target_bytes() const { return byte_size(target_dtype, target_shape.elements()); }
};

/// Which sample, and in which pass over the data: what is drawn anew in each pass, such as windows of a text, is a
/// function of both.
struct SampleKey {
  int64_t index = 0;
  uint64_t pass = 0;
};

/// The bytes of a sample or a target as its numbers: view_as<float>(destination)[0] = 1.
template <typename T>
std::span<T> view_as(std::span<uint8_t> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// One that cannot be read.
struct DamagedSample {
  int64_t number = 0;  // in its part of the data as it lies on disk: the same for every process that reads that
  std::string message;
};

/// To be derived from: samples with their targets, each found by its number.
class Dataset {
 public:
  explicit Dataset(DatasetInfo info) : info_(std::move(info)) {}
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  virtual int64_t size() const = 0;
  /// Copies a sample, row-major, to `destination` (sample_bytes() bytes, aligned for its type). Thread-safe.
  virtual void get(const SampleKey& key, std::span<uint8_t> destination) const = 0;
  /// Its target (target_bytes() bytes). Thread-safe.
  virtual void get_target(const SampleKey& key, std::span<uint8_t> destination) const = 0;

  /// Of images: the whole picture that a sample is the middle of, for crops of any size; null where the sample is all.
  virtual std::shared_ptr<const Image> picture(int64_t) const { return nullptr; }
  /// What it will still take in memory as it keeps what it decodes: an estimate.
  virtual int64_t cache_bytes_to_come() const { return 0; }
  /// What it decodes in every pass, as it may not keep it: an estimate.
  virtual int64_t uncached_bytes() const { return 0; }
  /// Keeps no more than that from now on.
  virtual void limit_cache(int64_t) {}
  /// Asks the system to read this sample's file ahead, where that can help; returns at once. Thread-safe.
  virtual void will_need(int64_t) const {}

  /// The name of a sample's file, for messages; empty where there is none.
  virtual std::string sample_name(int64_t) const { return ""; }
  /// The picture whose bytes, with the options in `encoding`, are all that a sample is made from; empty elsewhere.
  virtual std::filesystem::path picture_file(int64_t) const { return {}; }
  /// The row of tokens that samples are windows of; empty where they are not.
  virtual std::span<const uint16_t> tokens() const { return {}; }

  /// How many samples of each class, where targets are classes.
  virtual std::vector<int64_t> class_counts() const;
  /// Statistics of its images, where they are known without a look at them.
  virtual std::optional<ChannelStatistics> known_statistics() const { return std::nullopt; }
  /// How many samples were found damaged so far; each is skipped: a neighbour is read in its place. Thread-safe.
  virtual int64_t damaged_samples() const { return 0; }
  /// Each of them, by number. Thread-safe.
  virtual std::vector<DamagedSample> list_damaged() const { return {}; }
  /// What is read in the place of each in training, for messages: "the next record".
  virtual std::string_view stand_in() const { return "another sample"; }

  const DatasetInfo& info() const { return info_; }
  int64_t sample_bytes() const { return info_.sample_bytes(); }
  int64_t target_bytes() const { return info_.target_bytes(); }
  /// The class of a sample, where targets are classes.
  int32_t label(int64_t index) const;

 private:
  DatasetInfo info_;
};

/// All images in memory, as bytes.
class MemoryDataset : public Dataset {
 public:
  /// `pixels` holds the samples one after the other from byte `pixel_offset` on, so that a file's content can be taken
  /// as it is. Error(data) where the counts differ, a label is out of range or there is no sample.
  MemoryDataset(DatasetInfo info, std::vector<uint8_t> pixels, std::vector<uint8_t> labels, size_t pixel_offset = 0);
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override;
  void get_target(const SampleKey& key, std::span<uint8_t> destination) const override;

 private:
  std::vector<uint8_t> pixels_, labels_;
  size_t pixel_offset_;
};

/// Of images, over all samples, or, where they must be decoded, over a thousand that are spread evenly. Sums are whole
/// numbers, so the result depends neither on their order nor on the threads. A channel of constant value has deviation
/// 1: normalising it gives zeros. Errors of get() come out.
ChannelStatistics channel_statistics(const Dataset& dataset, int threads = 1);

}  // namespace weft::data
