// What recomputation decides about, without a graph: steps that read and write buffers, and for each buffer whether it
// stays from its first use to its last, or leaves memory over its longest pause, to be made again or read from a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::passes {

struct RecomputeBuffer {
  int64_t bytes = 0;
  bool outlives_step = false;
  double offload_seconds = -1;  // of writing it to a file and reading it back; negative: that cannot be
};

struct RecomputeStep {
  std::vector<int32_t> reads, writes;                 // buffers, each once
  std::vector<std::pair<int32_t, int32_t>> in_place;  // (written, read): one memory where the read one dies here
  int64_t workspace_bytes = 0;
  // The same run again, perhaps in a cheaper way.
  bool is_repeatable = true;
  std::vector<int32_t> reads_again, writes_again;
  std::vector<std::pair<int32_t, int32_t>> in_place_again;
  int64_t workspace_bytes_again = 0;
  double seconds_again = 0;
};

struct RecomputeProblem {
  std::vector<RecomputeBuffer> buffers;
  std::vector<RecomputeStep> steps;  // in order of execution
};

enum class Fate : uint8_t {
  stays,
  again,            // made again before the first use after the pause, then kept
  again_each_time,  // dropped once more wherever it is not used for some steps
  offloaded,        // written to a file where it is made, read back before the first use after the pause, then kept
};

/// A step in the longer order that recomputation makes, or a buffer that is read back.
struct RecomputeEvent {
  int32_t step = 0;
  bool is_again = false;
  int32_t loaded = -1;  // a buffer: it is read from the file, which `step` had made it for
};

struct RecomputeOutcome {
  int64_t peak_bytes = 0;
  double excess = 0;   // bytes above the limit, summed over events
  double seconds = 0;  // of all that runs again, and of the file
};

/// Follows the steps under given fates.
class RecomputeSimulator {
 public:
  /// Keeps a reference to the problem.
  explicit RecomputeSimulator(const RecomputeProblem& problem);

  /// Steps between the last use before the buffer's longest pause and the first use after it; 0 where it has none. The
  /// pause of what passes by begins with its last use.
  int32_t pause(int32_t buffer) const;
  /// Is the buffer dead before the step at which most bytes are alive? It then lives on only where something that is
  /// made again reads it, and it stays.
  bool is_passing(int32_t buffer) const { return is_passing_[static_cast<size_t>(buffer)]; }
  int32_t writer(int32_t buffer) const { return writer_[static_cast<size_t>(buffer)]; }

  RecomputeOutcome run(const std::vector<Fate>& fates, int64_t limit_bytes);
  /// Of the last run.
  const std::vector<RecomputeEvent>& events() const { return events_; }

 private:
  /// What a step does, in its turn or again: parts of items_, so that all steps lie beside each other.
  struct Work {
    int32_t reads = 0, writes = 0, overwritten = 0, end = 0;  // where each list begins; the last one's end
    int64_t workspace_bytes = 0;
  };
  struct BufferState {
    int32_t instance = -1, touched = -1;  // the newest instance, the step that touched it last
    int32_t early_end = 0;                // the last step before the pause
    Fate fate = Fate::stays;
    bool is_remade = false;
  };
  struct Instance {
    int64_t bytes, freed_bytes;  // what outlives the step is not freed
    int32_t first, last;         // events
  };
  struct Overwrite {
    int32_t instance, event;
  };

  Work listed(const std::vector<int32_t>& reads, const std::vector<int32_t>& writes,
              const std::vector<std::pair<int32_t, int32_t>>& in_place, int64_t workspace_bytes);
  const Work& work(int32_t step, bool again) const { return works_[2 * static_cast<size_t>(step) + (again ? 1 : 0)]; }
  int32_t find_fullest_step(const std::vector<int32_t>& last) const;
  static bool is_available(const BufferState& buffer, int32_t step);
  void require(int32_t buffer, int32_t step);
  void record(int32_t step, int32_t at_step, bool again);
  void load(int32_t buffer, int32_t at_step);
  void write(int32_t buffer, int32_t at_step, bool again);
  void add_instance(int32_t buffer);
  void add_event(const RecomputeEvent& event, int64_t workspace_bytes);
  RecomputeOutcome sum_up(int64_t limit_bytes);

  const RecomputeProblem& problem_;
  std::vector<int32_t> items_;                            // buffers
  std::vector<Work> works_;                               // of each step in its turn, then again
  std::vector<int32_t> writer_, early_end_, late_start_;  // per buffer: steps
  std::vector<bool> is_passing_;                          // per buffer
  // Of a run.
  std::vector<BufferState> buffers_;
  std::vector<RecomputeEvent> events_;
  std::vector<int64_t> workspaces_;  // per event
  std::vector<Instance> instances_;
  std::vector<Overwrite> overwrites_;
  std::vector<int64_t> change_;  // per event: of the bytes alive
  double seconds_ = 0;
};

}  // namespace weft::passes
