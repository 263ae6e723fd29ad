#include "weft/search/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/passes/ranks/pipeline_schedule.h"
#include "weft/spec/course.h"

namespace weft::search {

using predict::Strategy;

namespace {

std::vector<int64_t> divisors_of(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0) divisors.push_back(divisor);
  return divisors;
}

/// Into how many equal parts: powers of two, and one row each.
std::vector<int64_t> parts_of(int64_t rows) {
  constexpr int64_t kMostParts = 4096;
  std::vector<int64_t> parts;
  for (int64_t count = 1; count <= std::min(rows, kMostParts) && rows % count == 0; count *= 2) parts.push_back(count);
  if (rows <= kMostParts && parts.back() != rows) parts.push_back(rows);
  return parts;
}

class Enumeration {
 public:
  Enumeration(const Library& library, const spec::RunSpec& spec, const Strategy& start)
      : library_(library), spec_(spec), start_(start), samples_(start.batch * start.accumulate) {}

  Candidates run() {
    for (const int64_t tensor : open_or(divisors_of(start_.ranks), spec_.mesh.tensor, 1))
      for (const int64_t pipeline : open_or(divisors_of(start_.ranks), spec_.mesh.pipeline, 1)) {
        if (start_.ranks % (tensor * pipeline) != 0) continue;
        Strategy strategy = start_;
        strategy.tensor = tensor;
        strategy.pipeline = pipeline;
        if (spec_.mesh.data > 0 && spec_.mesh.data != strategy.data()) continue;
        add_levels(strategy);
      }
    for (auto& [reason, refusal] : refused_) found_.refused.push_back(refusal);
    return std::move(found_);
  }

 private:
  /// What the recipe says, where it says anything.
  static std::vector<int64_t> open_or(const std::vector<int64_t>& all, int64_t given, int64_t usual) {
    return given == usual ? all : std::vector<int64_t>{given};
  }

  void add_levels(Strategy strategy) {
    const std::vector<int64_t> levels =
        strategy.data() > 1 ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0};
    for (const int64_t zero : open_or(levels, spec_.shard.zero, 0)) {
      strategy.zero = zero;
      if (strategy.pipeline > 1)
        add_schedules(strategy);
      else
        add_batches(strategy);
    }
  }

  void add_batches(Strategy strategy) {
    if (samples_ % strategy.data() != 0) return;
    // Batches that change during the run stay as they are.
    const bool is_open = spec::stages_of(spec_).size() == 1;
    for (const int64_t count : is_open ? parts_of(samples_ / strategy.data()) : std::vector{start_.accumulate}) {
      strategy.accumulate = count;
      strategy.batch = samples_ / count;
      // Level 2 is 1 where one batch makes a step.
      if (strategy.zero == 2 && count == 1 && spec_.shard.zero == 0) continue;
      add(strategy);
    }
  }

  void add_schedules(Strategy strategy) {
    strategy.batch = samples_;
    strategy.accumulate = 1;
    if (samples_ % strategy.data() != 0) return;
    const int64_t rows = samples_ / strategy.data();
    std::vector<int64_t> counts = parts_of(rows);
    if (spec_.pipeline.micro_batches != spec::PipelineSpec{}.micro_batches) counts = {spec_.pipeline.micro_batches};
    for (const std::string& schedule : passes::pipeline_schedules()) {
      if (spec_.pipeline.schedule != spec::PipelineSpec{}.schedule && spec_.pipeline.schedule != schedule) continue;
      strategy.schedule = schedule;
      for (const int64_t count : counts) {
        strategy.micro_batches = count;
        if (strategy.zero == 2 && count == 1 && spec_.shard.zero == 0) continue;  // as above
        if (rows % count == 0) add(strategy);
      }
    }
  }

  void add(const Strategy& strategy) {
    // What the checks ask of a strategy.
    const std::string kind = fmt::format("{} {} {} {} {} {}", strategy.tensor, strategy.pipeline, strategy.zero,
                                         strategy.accumulate > 1, strategy.schedule, strategy.data() > 1);
    const auto [known, is_new] = refusals_.try_emplace(kind);
    if (is_new) known->second = refusal_of(library_, spec_, strategy);
    if (known->second.empty()) {
      found_.strategies.push_back(strategy);
      return;
    }
    std::string reason = known->second;  // whatever its numbers are
    std::erase_if(reason, [](char letter) { return letter >= '0' && letter <= '9'; });
    Refusal& refusal = refused_.try_emplace(reason, Refusal{known->second, 0}).first->second;
    ++refusal.strategies;
  }

  const Library& library_;
  const spec::RunSpec& spec_;
  const Strategy start_;
  const int64_t samples_;
  Candidates found_;
  std::map<std::string, std::string> refusals_;  // by kind of strategy
  std::map<std::string, Refusal> refused_;       // by reason
};

}  // namespace

std::string refusal_of(const Library& library, const spec::RunSpec& spec, const Strategy& strategy) {
  try {
    predict::recipe_by(strategy, spec, library);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

Candidates candidates_of(const Library& library, const spec::RunSpec& spec, const Strategy& start) {
  return Enumeration(library, spec, start).run();
}

std::string mesh_text(const Strategy& strategy) {
  return fmt::format("data {} x tensor {} x pipeline {}", strategy.data(), strategy.tensor, strategy.pipeline);
}

}  // namespace weft::search
