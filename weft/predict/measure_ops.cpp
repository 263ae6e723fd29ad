#include "weft/predict/measure_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <latch>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/memory.h"
#include "weft/graph/collective.h"
#include "weft/graph/signature_key.h"
#include "weft/predict/run_prediction.h"
#include "weft/program/cost_profile.h"
#include "weft/program/rank_runtime.h"
#include "weft/step/rank_mesh.h"

namespace weft::predict {

namespace {

constexpr double kSettled = 0.05;     // of the quartiles' distance over the median, of whole steps
constexpr double kMostHeldUp = 1.5;   // what is more comes of other programs
constexpr double kMemoryShare = 0.8;  // of what is available

/// Half the distance of the quartiles over the median.
double spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  const double median = values[count / 2];
  return median > 0 ? (values[3 * count / 4] - values[count / 4]) / (2 * median) : 0;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

/// Of all nodes, of one run.
double sum_of(const Profile& profile) {
  return std::accumulate(profile.seconds.begin(), profile.seconds.end(), 0.0) /
         static_cast<double>(std::max<int64_t>(1, profile.runs));
}

std::string name_of_step(const program::StepChoice& choice) {
  return fmt::format("{}, batch {}, {}", choice.spec.model.name, choice.spec.batch, choice.spec.precision);
}

/// As this process alone runs it. Of several ranks, as the first of them does: parts of layers have shapes of their
/// own, and some nodes are there for an exchange alone. What they exchange stays here.
program::PlannedOnRanks plan_alone(const Library& library, const program::StepChoice& choice, int64_t ranks) {
  const auto count = static_cast<int>(std::max(ranks, choice.spec.mesh.tensor));
  if (count <= 1) return program::plan_on_ranks(library, nullptr, {}, [&] { return choice; });
  step::require_mesh(choice.spec, count);
  const Mesh mesh = step::mesh_of(choice.spec, count);
  program::PlannedOnRanks planned;
  planned.runtime =
      std::make_unique<program::RankRuntime>(program::ranks_in_memory(static_cast<int>(mesh.size_of(kDataAxis))), mesh);
  const program::CostProfile profile =
      program::agreed_profile(nullptr, library, choice.spec.cost_profile, static_cast<int>(choice.spec.threads));
  planned.step =
      std::make_unique<program::PlannedStep>(library, choice, *planned.runtime, profile, Tuning{}, program::Note{});
  return planned;
}

/// Of so many ranks those beside the one that is measured. They run the same step over and over, each on a thread of
/// its own.
class Companions {
 public:
  Companions(const Library& library, const program::StepChoice& choice, int64_t ranks) : ready_(ranks - 1) {
    for (int64_t rank = 1; rank < ranks; ++rank) planned_.push_back(plan_alone(library, choice, ranks));
    runs_.resize(planned_.size());
    for (size_t rank = 0; rank < planned_.size(); ++rank) threads_.emplace_back([this, rank] { run(rank); });
    ready_.wait();
  }
  ~Companions() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Companions(const Companions&) = delete;
  Companions& operator=(const Companions&) = delete;

  /// Steps of the rank that ran the fewest so far; 0 where there are none. Error of whichever failed first.
  int64_t least_runs() const {
    const std::lock_guard lock(mutex_);
    if (error_) fail(ErrorKind::internal, "a rank beside it failed: {}", *error_);
    return runs_.empty() ? 0 : *std::min_element(runs_.begin(), runs_.end());
  }

 private:
  void run(size_t rank) {
    bool is_ready = false;
    try {
      program::RunningStep step(*planned_[rank].step);
      step.run();
      ready_.count_down();
      is_ready = true;
      while (!stop_) {
        step.run();
        const std::lock_guard lock(mutex_);
        ++runs_[rank];
      }
      step.finish();
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = error.what();
    }
    if (!is_ready) ready_.count_down();
  }

  std::vector<program::PlannedOnRanks> planned_;
  std::latch ready_;  // all of them run, or have failed
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::vector<int64_t> runs_;  // beside the first, by rank
  std::optional<std::string> error_;
  std::vector<std::thread> threads_;
};

/// One model's step, measured.
class StepMeasurement {
 public:
  StepMeasurement(program::PlannedStep& planned, OpTimes& times, MeasuredStep& report)
      : planned_(planned), times_(times), report_(report) {}

  void run(const MeasureOptions& options, double seconds) {
    program::RunningStep step(planned_);
    step.run();  // touches all memory for the first time
    const double begin = steady_seconds();
    std::vector<double> whole;
    std::vector<Profile> batches, updates;
    const auto is_enough = [&] {
      const auto runs = static_cast<int64_t>(batches.size());
      if (runs < options.fewest_runs) return false;
      return runs >= options.most_runs || steady_seconds() - begin > seconds ||
             (runs >= 2 * options.fewest_runs && spread_of(whole) < kSettled / 2);
    };
    while (!is_enough()) {
      const double at = steady_seconds();
      step.run();
      whole.push_back(steady_seconds() - at);
      step.run(&batches.emplace_back(), &updates.emplace_back());
    }
    step.finish();
    report_.step_seconds = median_of(whole);
    report_.runs = static_cast<int64_t>(whole.size());
    take(planned_.compiled(), batches);
    if (planned_.compiled_update() != nullptr) take(*planned_.compiled_update(), updates);
    std::vector<double> sums;
    for (size_t run = 0; run < batches.size(); ++run)
      sums.push_back(sum_of(batches[run]) + (planned_.compiled_update() != nullptr ? sum_of(updates[run]) : 0.0));
    keep(median_of(sums));
  }

 private:
  void take(const CompiledStep& compiled, const std::vector<Profile>& profiles) {
    for (size_t index = 0; index < compiled.plan.steps.size(); ++index) {
      const PlannedNode& planned = compiled.plan.steps[index];
      const Node& node = compiled.graph.node(planned.node);
      std::vector<double> seconds;
      for (const Profile& profile : profiles)
        seconds.push_back(profile.seconds[index] / static_cast<double>(std::max<int64_t>(1, profile.runs)));
      const double median = median_of(seconds);
      if (node.op->is_view || median <= 0) continue;
      sum_ += median;
      if (is_collective(node)) continue;
      const NodeSignature signature = signature_of(compiled.graph, planned.node);
      OpTime& time = found_[{signature_key(signature), planned.kernel}];
      time.work = work_of(signature, planned.kernel);
      time.of = report_.name;
      // Nodes that are alike in all but their place count alike.
      time.seconds += median;
      time.spread += spread_of(seconds);
      ++counts_[{signature_key(signature), planned.kernel}];
      ++report_.nodes;
    }
  }

  /// `typical`: the median of the sums over all nodes. It is more than the sum of the nodes' medians, since in each run
  /// some node is held up.
  void keep(double typical) {
    const double held_up = sum_ > 0 ? std::clamp(typical / sum_, 1.0, kMostHeldUp) : 1;
    for (auto& [key, time] : found_) {
      const auto count = static_cast<double>(counts_.at(key));
      time.seconds *= held_up / count;
      time.spread /= count;
      times_.add(key.first, std::move(time));
    }
    if (planned_.choice().batches > 1) return;  // of a step of several, the rest is not that of one
    // Going from node to node takes no longer than a kernel without work. What a large step has above that comes of the
    // machine's pace, which changed between its runs.
    const double own =
        std::clamp((report_.step_seconds - typical) / static_cast<double>(std::max<int64_t>(1, report_.nodes)), 0.0,
                   times_.rates()->call_seconds);
    times_.overhead = least_of(times_.overhead, {.seconds_per_node = own, .steps = 1});
  }

  program::PlannedStep& planned_;
  OpTimes& times_;
  MeasuredStep& report_;
  std::map<std::pair<std::string, std::string>, OpTime> found_;
  std::map<std::pair<std::string, std::string>, int64_t> counts_;
  double sum_ = 0;  // of all nodes
};

}  // namespace

MeasuredOps measure_ops(const Library& library, const std::vector<program::StepChoice>& choices,
                        const MeasureOptions& options) {
  MeasuredOps measured;
  if (choices.empty()) return measured;
  const auto threads = static_cast<int>(choices.front().spec.threads);
  measured.times.set_rates(library.device.make({.threads = threads, .kernels = library.kernels})->measure_rates());
  measured.times.ranks = options.ranks;
  const double begin = steady_seconds();
  // The smallest input first.
  std::vector<std::pair<double, size_t>> order;
  for (size_t at = 0; at < choices.size(); ++at) {
    const program::StepChoice& choice = choices[at];
    order.emplace_back(
        static_cast<double>(choice.input.batch) * static_cast<double>(Shape(choice.input.shape).elements()), at);
  }
  std::sort(order.begin(), order.end());
  for (size_t at = 0; at < order.size(); ++at) {
    const program::StepChoice& choice = choices[order[at].second];
    MeasuredStep& report = measured.steps.emplace_back();
    report.name = name_of_step(choice);
    const double left = options.most_seconds - (steady_seconds() - begin);
    try {
      if (left <= 0) fail(ErrorKind::usage, "the time is up; give more --seconds");
      const program::PlannedOnRanks planned = plan_alone(library, choice, options.ranks);
      const int64_t bytes = options.ranks * planned.step->total_bytes();
      if (static_cast<double>(bytes) > kMemoryShare * static_cast<double>(available_memory_bytes()))
        fail(ErrorKind::usage, "it needs {} of memory", human_bytes(static_cast<double>(bytes)));
      // By what was measured so far; a step runs twice for each measurement, and once before.
      const OpTimes known = measured.times;
      const double step =
          predict_step(graphs_of(*planned.step), measured_times(std::make_shared<OpTimes>(known)), {}).whole();
      const double least = step * static_cast<double>(1 + 2 * options.fewest_runs);
      if (least > options.most_seconds - (steady_seconds() - begin))
        fail(ErrorKind::usage, "it needs about {}; give more --seconds", human_duration(least));
      planned.step->require_memory({});
      const Companions companions(library, choice, options.ranks);
      OpTimes with_these = measured.times;
      const double now_left = options.most_seconds - (steady_seconds() - begin);
      StepMeasurement(*planned.step, with_these, report)
          .run(options, now_left / static_cast<double>(order.size() - at));
      report.companion_runs = companions.least_runs();
      measured.times = std::move(with_these);
    } catch (const Error& error) {
      report.left_out = error.what();
    }
    if (options.progress) options.progress(at + 1, order.size(), report);
  }
  return measured;
}

}  // namespace weft::predict
