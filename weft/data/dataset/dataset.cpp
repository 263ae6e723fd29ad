#include "weft/data/dataset/dataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::data {

std::string_view name_of(Split split) {
  return split == Split::train ? "train" : split == Split::test ? "test" : "all";
}

TargetKind DatasetInfo::target_kind() const {
  if (target_dtype != DType::i32) return TargetKind::values;
  if (source_length > 0) return TargetKind::sequence;
  if (target_shape.rank() == 0) return TargetKind::sample_class;
  if (sample_shape.rank() != 3) return TargetKind::next_tokens;
  return target_shape.rank() == 1 ? TargetKind::text : TargetKind::pixel_classes;
}

int64_t DatasetInfo::predictions_per_sample() const {
  const TargetKind kind = target_kind();
  return kind == TargetKind::values || kind == TargetKind::text ? 1 : target_shape.elements();
}

std::string_view DatasetInfo::item() const {
  return sample_dtype == DType::u8 ? "images" : sample_dtype == DType::i32 ? "tokens" : "rows";
}

int32_t Dataset::label(int64_t index) const {
  check(info_.target_dtype == DType::i32 && info_.target_shape.rank() == 0, "the label of data with classes");
  int32_t label = 0;
  get_target({.index = index}, {reinterpret_cast<uint8_t*>(&label), sizeof label});
  return label;
}

std::vector<int64_t> Dataset::class_counts() const {
  std::vector<int64_t> counts(static_cast<size_t>(info_.classes));
  for (int64_t index = 0; index < size(); ++index)
    if (const int32_t of = label(index); of >= 0 && of < info_.classes) ++counts[static_cast<size_t>(of)];
  return counts;
}

MemoryDataset::MemoryDataset(DatasetInfo info, std::vector<uint8_t> pixels, std::vector<uint8_t> labels,
                             size_t pixel_offset)
    : Dataset(std::move(info)), pixels_(std::move(pixels)), labels_(std::move(labels)), pixel_offset_(pixel_offset) {
  const std::string& name = this->info().name;
  const auto per_sample = static_cast<size_t>(sample_bytes());
  if (labels_.empty()) fail(ErrorKind::data, "[{}] holds no sample", name);
  if (pixels_.size() < pixel_offset_ || pixels_.size() - pixel_offset_ != labels_.size() * per_sample)
    fail(ErrorKind::data, "[{}] {} labels want {} bytes of pixels, got {}", name, labels_.size(),
         labels_.size() * per_sample, pixels_.size() - std::min(pixel_offset_, pixels_.size()));
  for (size_t at = 0; at < labels_.size(); ++at)
    if (labels_[at] >= this->info().classes)
      fail(ErrorKind::data, "[{}] label {} of sample {} is out of range: there are {} classes, counted from 0", name,
           labels_[at], at, this->info().classes);
}

void MemoryDataset::get(const SampleKey& key, std::span<uint8_t> destination) const {
  const auto bytes = static_cast<size_t>(sample_bytes());
  std::memcpy(destination.data(), pixels_.data() + pixel_offset_ + static_cast<size_t>(key.index) * bytes, bytes);
}

void MemoryDataset::get_target(const SampleKey& key, std::span<uint8_t> destination) const {
  const int32_t label = labels_[static_cast<size_t>(key.index)];
  std::memcpy(destination.data(), &label, sizeof label);
}

namespace {

constexpr int64_t kDecodedForStatistics = 1000;

using Histogram = std::array<int64_t, 256>;

/// One per channel: exact, and the sums need no second look at the pixels.
std::vector<Histogram> histograms_of(const Dataset& dataset, int64_t samples, int threads) {
  const Shape& shape = dataset.info().sample_shape;
  const int64_t area = shape[1] * shape[2], size = dataset.size();
  std::vector<Histogram> histograms(static_cast<size_t>(shape[0]));
  std::mutex mutex;
  std::optional<std::pair<int64_t, Error>> first_error;
  parallel_for(threads, samples, 64, [&](int64_t begin, int64_t end) {
    std::vector<Histogram> own(histograms.size());
    std::vector<uint8_t> sample(static_cast<size_t>(dataset.sample_bytes()));
    int64_t at = begin;
    try {
      for (; at < end; ++at) {
        dataset.get({.index = at * size / samples}, sample);
        const uint8_t* pixel = sample.data();
        for (Histogram& histogram : own)
          for (int64_t count = 0; count < area; ++count) ++histogram[*pixel++];
      }
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      if (!first_error || at < first_error->first) first_error.emplace(at, error);
      return;
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      first_error.emplace(at, Error(ErrorKind::internal, error.what()));
      return;
    }
    const std::lock_guard lock(mutex);
    for (size_t channel = 0; channel < own.size(); ++channel)
      for (size_t value = 0; value < 256; ++value) histograms[channel][value] += own[channel][value];
  });
  if (first_error) throw Error(first_error->second);
  return histograms;
}

}  // namespace

ChannelStatistics channel_statistics(const Dataset& dataset, int threads) {
  if (const std::optional<ChannelStatistics> known = dataset.known_statistics()) return *known;
  const Shape& shape = dataset.info().sample_shape;
  const int64_t samples = dataset.info().decoded ? std::min(dataset.size(), kDecodedForStatistics) : dataset.size();
  const std::vector<Histogram> histograms = histograms_of(dataset, samples, threads);
  ChannelStatistics statistics;
  const auto count = static_cast<double>(samples * shape[1] * shape[2]);
  for (const auto& histogram : histograms) {
    double sum = 0, squares = 0;
    for (size_t value = 0; value < 256; ++value) {
      const double scaled = static_cast<double>(value) / 255.0, weight = static_cast<double>(histogram[value]);
      sum += weight * scaled;
      squares += weight * scaled * scaled;
    }
    const double mean = sum / count, variance = squares / count - mean * mean;
    statistics.mean.push_back(static_cast<float>(mean));
    statistics.deviation.push_back(variance > 1e-12 ? static_cast<float>(std::sqrt(variance)) : 1.0f);
  }
  return statistics;
}

bool can_be(const ChannelStatistics& statistics) {
  constexpr float kMost = 1e6f;
  const auto is_mean = [](float value) { return std::abs(value) <= kMost; };  // false for NaN
  const auto is_deviation = [](float value) { return value > 0 && value <= kMost; };
  return statistics.mean.size() == statistics.deviation.size() &&
         std::all_of(statistics.mean.begin(), statistics.mean.end(), is_mean) &&
         std::all_of(statistics.deviation.begin(), statistics.deviation.end(), is_deviation);
}

}  // namespace weft::data
