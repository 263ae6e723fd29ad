// Which range of reals an activation's integers shall stand for, chosen from what calibration has seen of it.
//
//   min_max     from the least to the greatest number
//   percentile  without the 0.01 % of the numbers that are largest in magnitude (McKinstry et al. 2019; Wu et al. 2020,
//               "Integer quantization for deep learning inference", section 5.1)
//   entropy     the threshold at which the quantized distribution loses least information, by the Kullback-Leibler
//               divergence (Migacz 2017, "8-bit inference with TensorRT")
//   mse         the range with the least mean squared error, clipping included (Wu et al. 2020; Nagel et al. 2021,
//               "A white paper on neural network quantization", section 3.1)
//
// Every range holds 0, so that padding and relu lose nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace weft::quantize {

enum class Calibration { min_max, percentile, entropy, mse };
/// Error(usage) with the nearest name.
Calibration parse_calibration(const std::string& name);
std::vector<std::string> calibration_names();

struct RealRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool is_empty() const { return low > high; }
};

/// Widens the range by the numbers. Error(data), with the name of what they are, where one is NaN or infinite.
void widen(RealRange& range, std::span<const float> numbers, const std::string& name);
/// Least and greatest magnitude alike where `symmetric`; always with 0.
RealRange with_zero(const RealRange& range, bool symmetric);

/// Counts of numbers in equal parts of a range.
struct Histogram {
  RealRange range;
  std::vector<int64_t> counts;
  double width() const { return (range.high - range.low) / static_cast<double>(counts.size()); }
  double middle(size_t part) const { return range.low + (static_cast<double>(part) + 0.5) * width(); }
  int64_t total() const;
};
constexpr size_t kHistogramParts = 2048;
Histogram empty_histogram(const RealRange& range, size_t parts = kHistogramParts);
/// Numbers outside its range count in its first and last part.
void add(Histogram& histogram, std::span<const float> numbers);

/// The range that so many steps (255 of 8 bits) shall divide.
RealRange choose_range(const Histogram& histogram, Calibration calibration, int64_t steps, bool symmetric);

/// What integers from `lowest` to `highest` stand for.
struct Scale {
  float scale = 1;
  int32_t zero_point = 0;
};
/// Affine: the zero point is the integer nearest to where 0 lies. Symmetric: it is the middle, 0 of signed integers. A
/// range of no width gets the scale 1.
Scale scale_of(const RealRange& range, int64_t lowest, int64_t highest, bool symmetric);

}  // namespace weft::quantize
