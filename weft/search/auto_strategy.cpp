#include "weft/search/auto_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/spec/course.h"

namespace weft::search {

using predict::Strategy;

namespace {

constexpr int64_t kMostPlannedNodes = 4000;  // of the graphs of all stages of one plan
constexpr size_t kPlansOfLeast = 3;          // of strategies that want the least memory by their estimates

/// "512.4MB", rounded up, as keys take it.
std::string bytes_as_key(double bytes) { return fmt::format("{:.1f}MB", std::ceil(bytes / 1e5) / 10); }

class Chooser {
 public:
  Chooser(const Library& library, const predict::PlannedModel& model, const predict::Place& place,
          const Strategy& start)
      : library_(library), model_(model), place_(place), start_(start), times_(predict::times_at(place, start)) {
    place_.seeks_least_memory = false;  // of each strategy; fail_for_memory() asks it of the best
    // What is compared are steps: of how many, and what is evaluated, is asked where they change during the run.
    if (spec::stages_of(model.spec).size() == 1) model_.samples = 0;
    model_.evaluated_samples = {};
    memory_ = predict::memory_of_rank(place, start);
    if (const auto limit = parse_bytes(model.spec.memory_limit))
      memory_ = std::min(memory_, static_cast<double>(*limit));
  }

  Choice run(const Limits& limits, const std::function<void(const std::string&)>& progress) {
    int64_t estimated = 0, planned = 0;
    const auto tell = [&] {
      if (progress)
        progress(fmt::format("strategy = auto: {} strategies estimated, {} of them planned", estimated, planned));
    };
    ModelProfile profile(library_, model_.spec, model_.input, times_.nodes, times_.costs);
    Estimator estimator(profile, model_, place_, times_.nodes, memory_);
    const Evaluator evaluator{.bound = [&](const Strategy& of) { return estimator.bound(of); },
                              .estimate =
                                  [&](const Strategy& of) {
                                    ++estimated;
                                    tell();
                                    return estimator.estimate(of);
                                  },
                              .plan =
                                  [&](const Strategy& of) {
                                    ++planned;
                                    tell();
                                    return plan(of, profile.nodes());
                                  }};
    Choice choice{.found = search(candidates_of(library_, model_.spec, start_), evaluator, limits),
                  .start = start_,
                  .model = model_.spec.model.name,
                  .blocks = profile.describe_blocks(),
                  .times_from = times_.nodes.describe,
                  .exchange_from = predict::exchange_at(place_, start_, times_.nodes).describe,
                  .graphs = profile.graphs(),
                  .memory_bytes = memory_};
    if (!choice.found.chosen) fail_for_memory(choice.found, profile.nodes());
    return choice;
  }

 private:
  static int64_t planned_nodes(const Strategy& of, int64_t nodes) {
    return nodes * (of.pipeline > 1 ? of.micro_batches : 1);
  }

  std::optional<Planned> plan(const Strategy& strategy, int64_t nodes) const {
    if (planned_nodes(strategy, nodes) > kMostPlannedNodes) return std::nullopt;
    Planned planned{.strategy = strategy};
    // First as it is; then with what is computed twice to keep to the memory.
    for (const bool limited : {false, true}) {
      if (limited && !planned.strategy.memory_limit.empty()) break;
      if (limited) planned.strategy.memory_limit = bytes_as_key(memory_ - 1e5);
      try {
        const predict::Prediction prediction = predict_on(library_, model_, planned.strategy, place_);
        planned.memory_bytes = static_cast<double>(prediction.memory.total());
        planned.fits = planned.memory_bytes <= memory_;
        planned.seconds = prediction.step().expected;
        if (planned.fits) return planned;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) throw;
        planned.why = error.what();
      }
    }
    planned.strategy = strategy;
    return planned;
  }

  [[noreturn]] void fail_for_memory(const Found& found, int64_t nodes) const {
    if (found.ranked.empty())
      fail(ErrorKind::usage, "strategy = auto: {} ranks cannot train '{}' with a batch of {} by any strategy: {}",
           start_.ranks, model_.spec.model.name, start_.batch * start_.accumulate,
           found.refused.empty() ? "choose a batch that more of them can share" : found.refused.front().why);
    const Ranked* best = nullptr;
    double least = kNever;
    std::vector<const Ranked*> wanting;
    for (const Ranked& one : found.ranked) wanting.push_back(&one);
    std::stable_sort(wanting.begin(), wanting.end(), [](const Ranked* a, const Ranked* b) {
      return a->estimate.least_bytes < b->estimate.least_bytes;
    });
    for (size_t at = 0; at < std::min(kPlansOfLeast, wanting.size()); ++at) {
      const Strategy& strategy = wanting[at]->strategy;
      const double bytes = planned_nodes(strategy, nodes) <= kMostPlannedNodes
                               ? static_cast<double>(predict::least_memory(library_, model_, strategy, place_,
                                                                           predict::LeastMemory::of_one_search))
                               : wanting[at]->estimate.least_bytes;
      if (bytes >= least) continue;
      least = bytes;
      best = wanting[at];
    }
    if (planned_nodes(best->strategy, nodes) <= kMostPlannedNodes)
      least = std::min(least, static_cast<double>(predict::least_memory(library_, model_, best->strategy, place_)));
    fail(
        ErrorKind::usage,
        "strategy = auto: no strategy trains '{}' with a batch of {} on {} ranks of {} each: the least is {}, with {}; "
        "give --memory-limit {} or more, more ranks, or a smaller batch",
        model_.spec.model.name, start_.batch * start_.accumulate, start_.ranks, human_bytes(memory_),
        human_bytes(least), predict::describe(best->strategy), bytes_as_key(1.01 * least));
  }

  const Library& library_;
  predict::PlannedModel model_;
  predict::Place place_;
  const Strategy start_;
  const predict::PlaceTimes times_;
  double memory_ = 0;
};

}  // namespace

Choice choose_strategy(const Library& library, const predict::PlannedModel& model, const predict::Place& place,
                       const Strategy& start, const Limits& limits,
                       const std::function<void(const std::string&)>& progress) {
  return Chooser(library, model, place, start).run(limits, progress);
}

void apply_choice(const Strategy& chosen, spec::RunSpec& spec) {
  predict::apply(chosen, spec);
  spec.strategy = "manual";
  spec.evaluation.batch = std::min(spec.evaluation.batch, std::max<int64_t>(1, chosen.rows()) * chosen.ranks);
}

}  // namespace weft::search
