#include "weft/run/earlier_runs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/error.h"
#include "weft/base/parse_number.h"
#include "weft/run/metrics_history.h"
#include "weft/run/run_directory.h"
#include "weft/spec/course.h"
#include "weft/spec/recipe.h"
#include "weft/step/monitor.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostRuns = 100;  // the newest
constexpr double kSameOptimizer = 0.7, kSameModel = 0.4;

/// What decides the curve, without the seed.
std::string recipe_of(spec::RunSpec spec, const Entries& entries) {
  spec.seed = 1;
  spec.precision = "f32";
  spec.precision_of = spec.memory_limit = "";
  spec.shard = {};
  spec.mesh = {};
  spec.pipeline = {};
  spec.strategy = "manual";
  spec.late_multiply = true;
  return spec::spec_hash(spec, entries);
}

/// 0: it says nothing.
double likeness_of(const spec::RunSpec& earlier, const spec::RunSpec& spec, const Entries& entries) {
  if (earlier.model != spec.model || earlier.data != spec.data) return 0;
  if (recipe_of(earlier, entries) == recipe_of(spec, entries)) return 1;
  const bool same_optimizer = earlier.optimizer == spec.optimizer && earlier.batch == spec.batch &&
                              earlier.accumulate == spec.accumulate && earlier.epochs == spec.epochs;
  return same_optimizer ? kSameOptimizer : kSameModel;
}

predict::Curve curve_of(const MetricsHistory& history, const std::string& metric, int64_t steps) {
  predict::Curve curve;
  std::map<int64_t, double> seconds;
  for (const auto& [step, value] : points_of(history, "train_seconds")) seconds[step] = value;
  for (const auto& [step, value] : points_of(history, metric)) {
    curve.shares.push_back(static_cast<double>(step) / static_cast<double>(steps));
    curve.values.push_back(value);
    if (const auto found = seconds.find(step); found != seconds.end()) curve.seconds.push_back(found->second);
  }
  if (curve.seconds.size() < curve.values.size()) curve.seconds.clear();
  return curve;
}

std::vector<fs::path> newest_runs(const fs::path& folder, const fs::path& own) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (!fs::exists(entry.path() / "metrics.jsonl", code) || fs::equivalent(entry.path(), own, code)) continue;
    found.emplace_back(fs::last_write_time(entry.path() / "metrics.jsonl", code), entry.path());
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a > b; });
  std::vector<fs::path> paths;
  for (size_t at = 0; at < std::min(kMostRuns, found.size()); ++at) paths.push_back(found[at].second);
  return paths;
}

}  // namespace

std::vector<std::pair<int64_t, double>> points_of(const MetricsHistory& history, const std::string& metric) {
  std::map<int64_t, double> values;
  for (const auto* records : {&history.by_validation, &history.by_epoch})
    if (const auto found = records->find(metric); found != records->end())
      for (size_t at = 0; at < found->second.values.size(); ++at)
        if (std::isfinite(found->second.values[at])) values[found->second.steps[at]] = found->second.values[at];
  return {values.begin(), values.end()};
}

std::optional<predict::Target> target_of(const spec::RunSpec& spec, const Entries& entries) {
  const std::optional<double> value = parse_number<double>(spec.stop.target);
  if (spec.stop.target.empty() || !value) return std::nullopt;
  return predict::Target{spec.stop.monitor, *value, step::higher_is_better(spec.stop.monitor, entries)};
}

std::vector<predict::Curve> earlier_curves(const Library& library, const fs::path& folder, const fs::path& own,
                                           const spec::RunSpec& asked, const std::string& metric) {
  std::vector<predict::Curve> curves;
  spec::RunSpec spec = asked;
  spec.data = data::with_absolute_paths(library.data, spec.data);  // as runs keep them
  for (const fs::path& path : newest_runs(folder, own)) {
    try {
      const RunDirectory directory = RunDirectory::open(path);
      const spec::RunSpec earlier = directory.read_spec(library);
      const double likeness = likeness_of(earlier, spec, library);
      const int64_t samples = likeness > 0 ? directory.read_data().samples : 0;
      if (samples == 0) continue;
      const MetricsHistory history = read_metrics(directory.metrics());
      predict::Curve curve = curve_of(history, metric, spec::Course(earlier, samples).total_steps());
      curve.likeness = likeness;
      // One that did not get to its end says nothing of values that it had not reached.
      const bool is_over = fs::exists(directory.summary());
      if (!curve.values.empty() && is_over) curves.push_back(std::move(curve));
    } catch (const std::exception&) {
      continue;
    }
  }
  // Unlike ones are for want of better.
  if (std::any_of(curves.begin(), curves.end(), [](const predict::Curve& curve) { return curve.likeness == 1; }))
    std::erase_if(curves, [](const predict::Curve& curve) { return curve.likeness < 1; });
  return curves;
}

}  // namespace weft::run
