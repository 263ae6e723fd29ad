// Samples of any kind of task, drawn from their number.
#pragma once

#include <chrono>
#include <cmath>
#include <thread>

#include "weft/base/rng.h"
#include "weft/data/dataset/dataset.h"

namespace weft {

class DrawnData : public data::Dataset {
 public:
  /// Targets of the sample `spoiled`, where they are real values, are NaN.
  DrawnData(data::DatasetInfo info, int64_t samples, int64_t spoiled = -1)
      : Dataset(std::move(info)), samples_(samples), spoiled_(spoiled) {}
  int64_t size() const override { return samples_; }
  void get(const data::SampleKey& key, std::span<uint8_t> sample) const override {
    RandomStream random(1, static_cast<uint64_t>(key.index));
    if (info().sample_dtype == DType::u8)
      for (uint8_t& pixel : sample) pixel = static_cast<uint8_t>(random.below(256));
    if (info().sample_dtype == DType::f32)
      for (float& value : data::view_as<float>(sample)) value = random.normal();
    if (info().sample_dtype == DType::i32)
      for (int32_t& token : data::view_as<int32_t>(sample))
        token = static_cast<int32_t>(random.below(static_cast<uint32_t>(info().classes)));
  }
  void get_target(const data::SampleKey& key, std::span<uint8_t> target) const override {
    RandomStream random(2, static_cast<uint64_t>(key.index));
    if (info().target_dtype == DType::f32)
      for (float& value : data::view_as<float>(target)) value = key.index == spoiled_ ? std::nanf("") : random.normal();
    if (info().target_dtype == DType::i32)
      for (int32_t& label : data::view_as<int32_t>(target))
        label = info().has_ignored_targets() && random.below(4) == 0
                    ? data::kIgnoredTarget
                    : static_cast<int32_t>(random.below(static_cast<uint32_t>(info().classes)));
  }

 private:
  int64_t samples_, spoiled_;
};

/// Whose reader takes 2 ms per sample.
class SlowlyDrawnData : public DrawnData {
 public:
  using DrawnData::DrawnData;
  void get(const data::SampleKey& key, std::span<uint8_t> sample) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    DrawnData::get(key, sample);
  }
};

}  // namespace weft
