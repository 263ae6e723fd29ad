// A set of labelled images: what training and evaluation read from, whatever files it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor/shape.h"

namespace weft::data {

enum class Split { train, test };
std::string_view name_of(Split split);

struct DatasetInfo {
  std::string name;    // "fashion-mnist", for messages and summaries
  Shape sample_shape;  // (C,H,W)
  int64_t classes = 0;
  std::vector<std::string> class_names;  // one per class, or empty where the files have none
};

class Dataset {
 public:
  explicit Dataset(DatasetInfo info) : info_(std::move(info)) {}
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  virtual int64_t size() const = 0;
  /// Copies the pixels of a sample, u8 in C,H,W order, to `destination` (sample_elements() bytes). Thread-safe.
  virtual void get(int64_t index, std::span<uint8_t> destination) const = 0;
  /// In [0, classes).
  virtual int32_t label(int64_t index) const = 0;

  const DatasetInfo& info() const { return info_; }
  int64_t sample_elements() const { return info_.sample_shape.elements(); }

 private:
  DatasetInfo info_;
};

/// All samples in memory, as bytes.
class MemoryDataset : public Dataset {
 public:
  /// `pixels` holds the samples one after the other from byte `pixel_offset` on, so that a file's content can be taken
  /// as it is. Error(data) where the counts differ, a label is out of range or there is no sample.
  MemoryDataset(DatasetInfo info, std::vector<uint8_t> pixels, std::vector<uint8_t> labels, size_t pixel_offset = 0);
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  void get(int64_t index, std::span<uint8_t> destination) const override;
  int32_t label(int64_t index) const override { return labels_[static_cast<size_t>(index)]; }

 private:
  std::vector<uint8_t> pixels_, labels_;
  size_t pixel_offset_;
};

/// Mean and standard deviation of each channel, of pixels scaled to [0, 1].
struct ChannelStatistics {
  std::vector<float> mean, deviation;
};
/// Over all samples. Sums are whole numbers, so the result does not depend on their order. A channel of constant
/// value has deviation 1: normalising it gives zeros.
ChannelStatistics channel_statistics(const Dataset& dataset);

}  // namespace weft::data
