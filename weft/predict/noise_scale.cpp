#include "weft/predict/noise_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "weft/base/format.h"
#include "weft/base/table.h"

namespace weft::predict {

namespace {

constexpr size_t kBlocks = 20;
constexpr size_t kFewestMeasurements = 2;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Of Student's distribution with kBlocks - 1 degrees of freedom, the 0.9 quantile.
constexpr double kStudent80 = 1.328;

struct Sums {
  double gradient = 0, noise = 0, count = 0;

  void add(const GradientNorms& of, double sign = 1) {
    const double small = of.small_batch, large = of.large_batch;
    gradient += sign * (large * of.large_square - small * of.small_square) / (large - small);
    noise += sign * (of.small_square - of.large_square) / (1 / small - 1 / large);
    count += sign;
  }
};

}  // namespace

std::optional<NoiseScale> estimate_noise_scale(const std::vector<GradientNorms>& all) {
  std::vector<GradientNorms> norms;
  std::copy_if(all.begin(), all.end(), std::back_inserter(norms), [](const GradientNorms& of) {
    return of.small_batch > 0 && of.large_batch > of.small_batch && std::isfinite(of.small_square) &&
           std::isfinite(of.large_square);
  });
  if (norms.size() < kFewestMeasurements) return std::nullopt;
  Sums sums;
  for (const GradientNorms& of : norms) sums.add(of);
  NoiseScale found{.gradient_square = sums.gradient / sums.count,
                   .noise = sums.noise / sums.count,
                   .scale = {},
                   .measurements = static_cast<int64_t>(norms.size())};
  // The jackknife of the share |G|^2 / tr(S), which has no pole where the gradient drowns in the noise.
  const size_t blocks = std::min(kBlocks, norms.size());
  const double share = found.noise != 0 ? found.gradient_square / found.noise : kInfinite;
  double squares = 0;
  for (size_t block = 0; block < blocks; ++block) {
    Sums without = sums;
    for (size_t at = block * norms.size() / blocks; at < (block + 1) * norms.size() / blocks; ++at)
      without.add(norms[at], -1);
    const double difference = without.gradient / without.noise - share;
    squares += difference * difference;
  }
  const auto count = static_cast<double>(blocks);
  const double error = kStudent80 * std::sqrt((count - 1) / count * squares);
  const auto scale_of = [](double of) { return of > 0 ? 1 / of : kInfinite; };
  if (found.noise <= 0) {  // larger batches have the same gradient
    found.scale = {0, 0, scale_of(std::max(0.0, share - error))};
    return found;
  }
  found.scale = {scale_of(share + error), scale_of(share), scale_of(share - error)};
  return found;
}

double steps_factor(double scale, double from, double to) {
  if (std::isinf(scale)) return from / to;
  return (1 + scale / to) / (1 + scale / from);
}

namespace {

std::string in_samples(double scale) { return std::isinf(scale) ? "any number" : fmt::format("{:.3g}", scale); }

std::string scale_text(const NoiseScale& scale) {
  return fmt::format("{} samples ({} to {}, of {} measurements)", in_samples(scale.scale.expected),
                     in_samples(scale.scale.low), in_samples(scale.scale.high), scale.measurements);
}

}  // namespace

std::string describe_noise_scale(const std::vector<GradientNorms>& norms, int64_t batch) {
  const auto half = norms.begin() + static_cast<std::ptrdiff_t>(norms.size() / 2);
  const std::optional<NoiseScale> early = estimate_noise_scale({norms.begin(), half}),
                                  late = estimate_noise_scale({half, norms.end()});
  if (!early || !late) return "";
  const double scale = late->scale.expected;
  Table table({{"batch", Align::right}, {"steps", Align::right}, {"samples", Align::right}});
  for (const double times : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    const double to = times * static_cast<double>(batch), steps = steps_factor(scale, static_cast<double>(batch), to);
    table.add_row(
        {fmt::format("{:.0f}", to), fmt::format("{:.2f} times", steps), fmt::format("{:.2f} times", steps * times)});
  }
  return fmt::format(
      "gradient noise scale: {} in the first half of what was measured, {} in the second\nto the same loss, by the "
      "second half:\n{}{}\n",
      scale_text(*early), scale_text(*late), table.text(),
      std::isinf(scale)
          ? "The gradient is all noise at these batches: larger ones need as much fewer steps."
          : fmt::format("The batch can grow to about {:.3g} samples before it needs twice the samples that small "
                        "batches need.",
                        scale));
}

}  // namespace weft::predict
