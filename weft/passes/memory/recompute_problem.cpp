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
  for (const RecomputeStep& step : problem.steps) {
    works_.push_back(listed(step.reads, step.writes, step.in_place, step.workspace_bytes));
    works_.push_back(listed(step.reads_again, step.writes_again, step.in_place_again, step.workspace_bytes_again));
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

RecomputeSimulator::Work RecomputeSimulator::listed(const std::vector<int32_t>& reads,
                                                    const std::vector<int32_t>& writes,
                                                    const std::vector<std::pair<int32_t, int32_t>>& in_place,
                                                    int64_t workspace_bytes) {
  const auto place = [&] { return static_cast<int32_t>(items_.size()); };
  Work work{.workspace_bytes = workspace_bytes};
  work.reads = place();
  items_.insert(items_.end(), reads.begin(), reads.end());
  work.writes = place();
  items_.insert(items_.end(), writes.begin(), writes.end());
  work.overwritten = place();
  for (const auto& [written, read] : in_place) items_.push_back(read);
  work.end = place();
  return work;
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

bool RecomputeSimulator::is_available(const BufferState& buffer, int32_t step) {
  if (buffer.instance < 0) return false;
  if (buffer.fate == Fate::stays) return true;
  if (!buffer.is_remade) return step <= buffer.early_end;
  return buffer.fate != Fate::again_each_time || step - buffer.touched <= kWindow;
}

void RecomputeSimulator::require(int32_t buffer, int32_t step) {
  const BufferState& state = buffers_[static_cast<size_t>(buffer)];
  if (is_available(state, step)) return;
  if (state.fate == Fate::offloaded) return load(buffer, step);
  const int32_t maker = writer_[static_cast<size_t>(buffer)];
  const Work& made = work(maker, true);
  for (int32_t at = made.reads; at < made.writes; ++at) require(items_[static_cast<size_t>(at)], step);
  record(maker, step, true);
}

/// Made by the event that comes next.
void RecomputeSimulator::add_instance(int32_t buffer) {
  const RecomputeBuffer& of = problem_.buffers[static_cast<size_t>(buffer)];
  const auto event = static_cast<int32_t>(events_.size());
  instances_.push_back({of.bytes, of.outlives_step ? 0 : of.bytes, event, event});
}

void RecomputeSimulator::add_event(const RecomputeEvent& event, int64_t workspace_bytes) {
  events_.push_back(event);
  workspaces_.push_back(workspace_bytes);
}

void RecomputeSimulator::write(int32_t buffer, int32_t at_step, bool again) {
  BufferState& state = buffers_[static_cast<size_t>(buffer)];
  const bool is_spare = again && is_available(state, at_step);  // a second result that nobody waits for
  add_instance(buffer);
  if (is_spare) return;
  state.instance = static_cast<int32_t>(instances_.size()) - 1;
  state.touched = at_step;
  state.is_remade = again;
}

/// Adds the event: `step` runs, in its turn or again for the sake of `at_step`.
void RecomputeSimulator::record(int32_t step, int32_t at_step, bool again) {
  const Work& what = work(step, again);
  const auto event = static_cast<int32_t>(events_.size());
  const int32_t* const items = items_.data();
  for (int32_t at = what.reads; at < what.writes; ++at) {
    BufferState& read = buffers_[static_cast<size_t>(items[at])];
    instances_[static_cast<size_t>(read.instance)].last = event;
    read.touched = at_step;
  }
  for (int32_t at = what.overwritten; at < what.end; ++at)
    overwrites_.push_back({buffers_[static_cast<size_t>(items[at])].instance, event});
  for (int32_t at = what.writes; at < what.overwritten; ++at) write(items[at], at_step, again);
  if (again) seconds_ += problem_.steps[static_cast<size_t>(step)].seconds_again;
  add_event({step, again, -1}, what.workspace_bytes);
}

/// Adds the event: the buffer is read back for the sake of `at_step`. Writing it, where it was made, takes no memory.
void RecomputeSimulator::load(int32_t buffer, int32_t at_step) {
  BufferState& state = buffers_[static_cast<size_t>(buffer)];
  state.instance = static_cast<int32_t>(instances_.size());
  state.touched = at_step;
  state.is_remade = true;
  add_instance(buffer);
  seconds_ += problem_.buffers[static_cast<size_t>(buffer)].offload_seconds;
  add_event({writer_[static_cast<size_t>(buffer)], false, buffer}, 0);
}

RecomputeOutcome RecomputeSimulator::run(const std::vector<Fate>& fates, int64_t limit_bytes) {
  events_.clear();
  workspaces_.clear();
  instances_.clear();
  overwrites_.clear();
  buffers_.resize(problem_.buffers.size());
  for (size_t b = 0; b < buffers_.size(); ++b) buffers_[b] = {.early_end = early_end_[b], .fate = fates[b]};
  seconds_ = 0;
  for (size_t index = 0; index < problem_.steps.size(); ++index) {
    const auto step = static_cast<int32_t>(index);
    const Work& turn = work(step, false);
    for (int32_t at = turn.reads; at < turn.writes; ++at) require(items_[static_cast<size_t>(at)], step);
    record(step, step, false);
  }
  return sum_up(limit_bytes);
}

RecomputeOutcome RecomputeSimulator::sum_up(int64_t limit_bytes) {
  const size_t events = events_.size();
  change_.assign(events + 1, 0);
  for (const Instance& instance : instances_) {
    change_[static_cast<size_t>(instance.first)] += instance.bytes;
    change_[static_cast<size_t>(instance.last) + 1] -= instance.freed_bytes;
  }
  for (const Overwrite& overwrite : overwrites_) {
    const Instance& instance = instances_[static_cast<size_t>(overwrite.instance)];
    if (instance.last != overwrite.event || instance.first == overwrite.event) continue;
    change_[static_cast<size_t>(overwrite.event)] -= instance.freed_bytes;
    change_[static_cast<size_t>(overwrite.event) + 1] += instance.freed_bytes;
  }
  RecomputeOutcome outcome;
  outcome.seconds = seconds_;
  int64_t live = 0;
  for (size_t event = 0; event < events; ++event) {
    live += change_[event];
    const int64_t now = live + workspaces_[event];
    outcome.peak_bytes = std::max(outcome.peak_bytes, now);
    if (now > limit_bytes) outcome.excess += static_cast<double>(now - limit_bytes);
  }
  return outcome;
}

}  // namespace weft::passes
