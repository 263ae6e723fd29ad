#include "weft/quantize/ranges.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft::quantize {

namespace {

constexpr double kPercentile = 0.9999;
constexpr int kMseCandidates = 100;

constexpr std::array<std::pair<const char*, Calibration>, 4> kNames{{{"min_max", Calibration::min_max},
                                                                     {"percentile", Calibration::percentile},
                                                                     {"entropy", Calibration::entropy},
                                                                     {"mse", Calibration::mse}}};

/// The magnitude below which that share of the numbers lies, on either side of 0.
RealRange percentile_range(const Histogram& histogram) {
  const auto cut = static_cast<double>(histogram.total()) * (1 - kPercentile);
  RealRange range = histogram.range;
  double below = 0, above = 0;
  size_t first = 0, last = histogram.counts.size();
  // The farther end loses first: magnitudes count.
  while (first + 1 < last) {
    const bool is_low = -histogram.middle(first) > histogram.middle(last - 1);
    const auto count = static_cast<double>(histogram.counts[is_low ? first : last - 1]);
    if (below + above + count > cut) break;
    (is_low ? below : above) += count;
    is_low ? ++first : --last;
    range.low = histogram.range.low + static_cast<double>(first) * histogram.width();
    range.high = histogram.range.low + static_cast<double>(last) * histogram.width();
  }
  return range;
}

/// Of numbers that a range of so many steps rounds and clips.
double mean_squared_error(const Histogram& histogram, const RealRange& range, int64_t steps) {
  const double step = (range.high - range.low) / static_cast<double>(steps);
  double error = 0;
  for (size_t part = 0; part < histogram.counts.size(); ++part) {
    if (histogram.counts[part] == 0) continue;
    const double x = histogram.middle(part), clipped = std::clamp(x, range.low, range.high);
    // Within the range the error is spread evenly over a step; a part of the histogram is far narrower than one.
    const double rounding = step * step / 12, clipping = (x - clipped) * (x - clipped);
    error += static_cast<double>(histogram.counts[part]) * (clipping > 0 ? clipping : rounding);
  }
  return error / static_cast<double>(std::max<int64_t>(1, histogram.total()));
}

RealRange mse_range(const Histogram& histogram, int64_t steps, bool symmetric) {
  const RealRange whole = with_zero(histogram.range, symmetric);
  RealRange best = whole;
  double least = mean_squared_error(histogram, whole, steps);
  for (int candidate = 1; candidate < kMseCandidates; ++candidate) {
    const double share = static_cast<double>(candidate) / kMseCandidates;
    const RealRange range{whole.low * share, whole.high * share};
    const double error = mean_squared_error(histogram, range, steps);
    if (error < least) {
      least = error;
      best = range;
    }
  }
  return best;
}

/// The divergence of magnitudes up to `parts` parts, the rest clipped into the last one, from the same in `levels`.
double divergence(const std::vector<int64_t>& magnitudes, size_t parts, size_t levels) {
  std::vector<double> clipped(magnitudes.begin(), magnitudes.begin() + static_cast<std::ptrdiff_t>(parts));
  double outside = 0;
  for (size_t part = parts; part < magnitudes.size(); ++part) outside += static_cast<double>(magnitudes[part]);
  std::vector<double> coarse(parts, 0);
  for (size_t level = 0; level < levels; ++level) {
    const size_t begin = level * parts / levels, end = (level + 1) * parts / levels;
    double sum = 0;
    size_t filled = 0;
    for (size_t part = begin; part < end; ++part) {
      sum += clipped[part];
      filled += clipped[part] > 0 ? 1 : 0;
    }
    for (size_t part = begin; part < end; ++part)
      if (clipped[part] > 0) coarse[part] = sum / static_cast<double>(filled);
  }
  clipped[parts - 1] += outside;
  double all = 0, coarse_all = 0, result = 0;
  for (size_t part = 0; part < parts; ++part) {
    all += clipped[part];
    coarse_all += coarse[part];
  }
  constexpr double kNone = 1e-9;  // of a part that the coarse distribution has not
  for (size_t part = 0; part < parts; ++part)
    if (clipped[part] > 0)
      result += clipped[part] / all *
                std::log(clipped[part] / all / std::max(kNone, coarse_all > 0 ? coarse[part] / coarse_all : 0));
  return result;
}

RealRange entropy_range(const Histogram& histogram, int64_t steps, bool symmetric) {
  const RealRange whole = with_zero(histogram.range, symmetric);
  const double most = std::max(-whole.low, whole.high);
  std::vector<int64_t> magnitudes(histogram.counts.size(), 0);
  for (size_t part = 0; part < histogram.counts.size(); ++part) {
    const auto at =
        static_cast<size_t>(std::fabs(histogram.middle(part)) / most * static_cast<double>(magnitudes.size()));
    magnitudes[std::min(at, magnitudes.size() - 1)] += histogram.counts[part];
  }
  magnitudes[0] = magnitudes.size() > 1 ? std::min(magnitudes[0], magnitudes[1]) : magnitudes[0];  // zeros of a relu
  const bool two_sided = whole.low < 0 && whole.high > 0;
  const auto levels = static_cast<size_t>(two_sided ? (steps + 1) / 2 : steps + 1);
  if (magnitudes.size() <= levels) return whole;
  size_t best = magnitudes.size();
  double least = std::numeric_limits<double>::infinity();
  const size_t stride = std::max<size_t>(1, magnitudes.size() / 256);
  for (size_t parts = levels; parts <= magnitudes.size(); parts += stride) {
    const double found = divergence(magnitudes, parts, levels);
    if (found >= least) continue;
    least = found;
    best = parts;
  }
  const double threshold = most * static_cast<double>(best) / static_cast<double>(magnitudes.size());
  return {std::max(whole.low, -threshold), std::min(whole.high, threshold)};
}

}  // namespace

Calibration parse_calibration(const std::string& name) {
  for (const auto& [known, calibration] : kNames)
    if (name == known) return calibration;
  fail(ErrorKind::usage, "there is no calibration '{}'{}", name, suggestion(name, calibration_names()));
}

std::vector<std::string> calibration_names() {
  std::vector<std::string> names;
  for (const auto& entry : kNames) names.emplace_back(entry.first);
  return names;
}

void widen(RealRange& range, std::span<const float> numbers, const std::string& name) {
  for (const float number : numbers) {
    if (!std::isfinite(number))
      fail(ErrorKind::data,
           "calibration: '{}' has a {} for some sample; look for damaged samples, or for a model that has diverged",
           name, std::isnan(number) ? "NaN" : "number beyond all limits");
    range.low = std::min(range.low, static_cast<double>(number));
    range.high = std::max(range.high, static_cast<double>(number));
  }
}

RealRange with_zero(const RealRange& range, bool symmetric) {
  RealRange result{std::min(0.0, range.low), std::max(0.0, range.high)};
  if (range.is_empty()) result = {0, 0};
  if (symmetric) {
    const double most = std::max(-result.low, result.high);
    result = {-most, most};
  }
  return result;
}

int64_t Histogram::total() const {
  int64_t sum = 0;
  for (const int64_t count : counts) sum += count;
  return sum;
}

Histogram empty_histogram(const RealRange& range, size_t parts) {
  return {range, std::vector<int64_t>(range.high > range.low ? parts : 1, 0)};
}

void add(Histogram& histogram, std::span<const float> numbers) {
  const double factor = histogram.width() > 0 ? 1 / histogram.width() : 0;
  const auto last = static_cast<double>(histogram.counts.size() - 1);
  for (const float number : numbers) {
    const double at = std::clamp((static_cast<double>(number) - histogram.range.low) * factor, 0.0, last);
    ++histogram.counts[static_cast<size_t>(at)];
  }
}

RealRange choose_range(const Histogram& histogram, Calibration calibration, int64_t steps, bool symmetric) {
  const RealRange whole = with_zero(histogram.range, symmetric);
  if (histogram.total() == 0 || !(whole.high > whole.low)) return whole;
  switch (calibration) {
    case Calibration::min_max:
      return whole;
    case Calibration::percentile:
      return with_zero(percentile_range(histogram), symmetric);
    case Calibration::entropy:
      return with_zero(entropy_range(histogram, steps, symmetric), symmetric);
    case Calibration::mse:
      return with_zero(mse_range(histogram, steps, symmetric), symmetric);
  }
  fail(ErrorKind::internal, "a calibration that does not exist");
}

Scale scale_of(const RealRange& range, int64_t lowest, int64_t highest, bool symmetric) {
  const RealRange whole = with_zero(range, symmetric);
  // Of signed integers the lowest has no counterpart.
  const int64_t low = symmetric && lowest < 0 ? -highest : lowest;
  const double width = whole.high - whole.low;
  const auto scale = static_cast<float>(width / static_cast<double>(highest - low));
  if (!(scale > 0) || !std::isfinite(scale)) return {1, static_cast<int32_t>(lowest < 0 ? 0 : lowest)};
  const double zero = static_cast<double>(low) - whole.low / static_cast<double>(scale);
  return {scale, static_cast<int32_t>(std::clamp<double>(std::nearbyint(zero), static_cast<double>(lowest),
                                                         static_cast<double>(highest)))};
}

}  // namespace weft::quantize
