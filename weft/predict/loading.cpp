#include "weft/predict/loading.h"

#include <algorithm>

#include "weft/base/clock.h"

namespace weft::predict {

namespace {

constexpr int64_t kFewest = 2, kMost = 64;
constexpr double kHeldUp = 1.5;  // by so much more than the cores' time that is taken

}  // namespace

double measure_loading(const data::Dataset& dataset, data::LoaderOptions options, double most_seconds) {
  options.workers = 0;
  const data::Loader loader(dataset, options);
  const int64_t count = std::min(kMost, dataset.size());
  loader.load_sample(0, 0);  // opens files
  const double begin = steady_seconds();
  int64_t done = 0;
  // Far apart, as shuffled samples are.
  for (; done < count && (done < kFewest || steady_seconds() - begin < most_seconds); ++done)
    loader.load_sample((done * (dataset.size() / count)) % dataset.size(), 0);
  return done > 0 ? (steady_seconds() - begin) / static_cast<double>(done) : 0;
}

double loading_seconds(double core_seconds, double step_seconds, const HostCores& host) {
  const double all = core_seconds * static_cast<double>(host.ranks);
  const auto spare = static_cast<double>(host.cores - host.threads * host.ranks);
  if (spare >= 1) return std::max(0.0, all / spare - step_seconds);
  const double taken = kHeldUp * all / static_cast<double>(std::max<int64_t>(1, host.cores));
  return std::max(taken, all / static_cast<double>(std::max<int64_t>(1, host.cores)) - step_seconds);
}

}  // namespace weft::predict
