#include "weft/passes/memory/recompute_problem.h"

#include <algorithm>

namespace weft::passes {

namespace {
constexpr int32_t kWindow = 6;  // steps that Fate::again_each_time bears without a use
}  // namespace

RecomputeSimulator::RecomputeSimulator(const RecomputeProblem& problem)
    : problem_(problem),
      writer_(problem.buffers.size(), -1),
      early_end_(problem.buffers.size(), 0),
      late_start_(problem.buffers.size(), 0) {
  std::vector<int32_t> last(problem.buffers.size(), -1);
  for (size_t index = 0; index < problem.steps.size(); ++index) {
    const auto step = static_cast<int32_t>(index);
    for (const int32_t buffer : problem.steps[index].reads) {
      const auto b = static_cast<size_t>(buffer);
      if (step - last[b] > late_start_[b] - early_end_[b]) {
        early_end_[b] = last[b];
        late_start_[b] = step;
      }
      last[b] = step;
    }
    for (const int32_t buffer : problem.steps[index].writes)
      writer_[static_cast<size_t>(buffer)] = last[static_cast<size_t>(buffer)] = step;
  }
  const int32_t fullest = find_fullest_step(last);
  is_passing_.assign(problem.buffers.size(), false);
  for (size_t b = 0; b < problem.buffers.size(); ++b) {
    if (last[b] >= fullest || problem.buffers[b].outlives_step) continue;
    is_passing_[b] = true;
    early_end_[b] = last[b];
    late_start_[b] = static_cast<int32_t>(problem.steps.size());
  }
}

/// Where most bytes are alive if nothing is dropped.
int32_t RecomputeSimulator::find_fullest_step(const std::vector<int32_t>& last) const {
  std::vector<int64_t> change(problem_.steps.size() + 1, 0);
  for (size_t b = 0; b < problem_.buffers.size(); ++b) {
    if (writer_[b] < 0) continue;
    change[static_cast<size_t>(writer_[b])] += problem_.buffers[b].bytes;
    change[static_cast<size_t>(last[b]) + 1] -= problem_.buffers[b].bytes;
  }
  int64_t live = 0, most = -1;
  int32_t fullest = 0;
  for (size_t step = 0; step < problem_.steps.size(); ++step) {
    live += change[step];
    if (live <= most) continue;
    most = live;
    fullest = static_cast<int32_t>(step);
  }
  return fullest;
}

int32_t RecomputeSimulator::pause(int32_t buffer) const {
  return late_start_[static_cast<size_t>(buffer)] - early_end_[static_cast<size_t>(buffer)];
}

bool RecomputeSimulator::is_available(int32_t buffer, int32_t step) const {
  const auto b = static_cast<size_t>(buffer);
  if (current_[b] < 0) return false;
  switch ((*fates_)[b]) {
    case Fate::stays:
      return true;
    case Fate::again:
    case Fate::offloaded:
      return is_remade_[b] || step <= early_end_[b];
    case Fate::again_each_time:
      return is_remade_[b] ? step - touched_[b] <= kWindow : step <= early_end_[b];
  }
  return true;
}

void RecomputeSimulator::require(int32_t buffer, int32_t step) {
  if (is_available(buffer, step)) return;
  if ((*fates_)[static_cast<size_t>(buffer)] == Fate::offloaded) return load(buffer, step);
  const int32_t maker = writer_[static_cast<size_t>(buffer)];
  for (const int32_t read : problem_.steps[static_cast<size_t>(maker)].reads_again) require(read, step);
  record(maker, step, true);
}

void RecomputeSimulator::write(int32_t buffer, int32_t at_step, bool again) {
  const auto b = static_cast<size_t>(buffer);
  const auto event = static_cast<int32_t>(events_.size());
  const bool is_spare = again && is_available(buffer, at_step);  // a second result that nobody waits for
  instances_.push_back({buffer, event, event});
  if (is_spare) return;
  current_[b] = static_cast<int32_t>(instances_.size()) - 1;
  touched_[b] = at_step;
  is_remade_[b] = again;
}

/// Adds the event: `step` runs, in its turn or again for the sake of `at_step`.
void RecomputeSimulator::record(int32_t step, int32_t at_step, bool again) {
  const RecomputeStep& what = problem_.steps[static_cast<size_t>(step)];
  const auto event = static_cast<int32_t>(events_.size());
  for (const int32_t read : again ? what.reads_again : what.reads) {
    instances_[static_cast<size_t>(current_[static_cast<size_t>(read)])].last = event;
    touched_[static_cast<size_t>(read)] = at_step;
  }
  for (const auto& [written, read] : again ? what.in_place_again : what.in_place)
    overwrites_.push_back({current_[static_cast<size_t>(read)], event});
  for (const int32_t written : again ? what.writes_again : what.writes) write(written, at_step, again);
  if (again) seconds_ += what.seconds_again;
  events_.push_back({step, again, -1});
}

/// Adds the event: the buffer is read back for the sake of `at_step`. Writing it, where it was made, takes no memory.
void RecomputeSimulator::load(int32_t buffer, int32_t at_step) {
  const auto b = static_cast<size_t>(buffer);
  const auto event = static_cast<int32_t>(events_.size());
  current_[b] = static_cast<int32_t>(instances_.size());
  instances_.push_back({buffer, event, event});
  touched_[b] = at_step;
  is_remade_[b] = true;
  seconds_ += problem_.buffers[b].offload_seconds;
  events_.push_back({writer_[b], false, buffer});
}

RecomputeOutcome RecomputeSimulator::run(const std::vector<Fate>& fates, int64_t limit_bytes) {
  fates_ = &fates;
  events_.clear();
  instances_.clear();
  overwrites_.clear();
  current_.assign(problem_.buffers.size(), -1);
  touched_.assign(problem_.buffers.size(), -1);
  is_remade_.assign(problem_.buffers.size(), false);
  seconds_ = 0;
  for (size_t index = 0; index < problem_.steps.size(); ++index) {
    const auto step = static_cast<int32_t>(index);
    for (const int32_t read : problem_.steps[index].reads) require(read, step);
    record(step, step, false);
  }
  return sum_up(limit_bytes);
}

RecomputeOutcome RecomputeSimulator::sum_up(int64_t limit_bytes) {
  const size_t events = events_.size();
  change_.assign(events + 1, 0);
  for (const Instance& instance : instances_) {
    const RecomputeBuffer& buffer = problem_.buffers[static_cast<size_t>(instance.buffer)];
    change_[static_cast<size_t>(instance.first)] += buffer.bytes;
    if (!buffer.outlives_step) change_[static_cast<size_t>(instance.last) + 1] -= buffer.bytes;
  }
  for (const Overwrite& overwrite : overwrites_) {
    const Instance& instance = instances_[static_cast<size_t>(overwrite.instance)];
    const RecomputeBuffer& buffer = problem_.buffers[static_cast<size_t>(instance.buffer)];
    if (instance.last != overwrite.event || instance.first == overwrite.event || buffer.outlives_step) continue;
    change_[static_cast<size_t>(overwrite.event)] -= buffer.bytes;
    change_[static_cast<size_t>(overwrite.event) + 1] += buffer.bytes;
  }
  RecomputeOutcome outcome;
  outcome.seconds = seconds_;
  int64_t live = 0;
  for (size_t event = 0; event < events; ++event) {
    live += change_[event];
    const RecomputeStep& step = problem_.steps[static_cast<size_t>(events_[event].step)];
    const int64_t workspace = events_[event].is_again ? step.workspace_bytes_again : step.workspace_bytes;
    const int64_t now = live + (events_[event].loaded >= 0 ? 0 : workspace);
    outcome.peak_bytes = std::max(outcome.peak_bytes, now);
    outcome.excess += static_cast<double>(std::max<int64_t>(0, now - limit_bytes));
  }
  return outcome;
}

}  // namespace weft::passes
