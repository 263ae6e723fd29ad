// The scalar inputs of a step: what its graphs read besides state and batches.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "weft/runtime/executor.h"
#include "weft/spec/course.h"
#include "weft/spec/run_spec.h"

namespace weft::step {

/// One batch of a step.
struct StepPart {
  int64_t step = 0;
  int64_t part = 0, parts = 1;    // which of its batches, of how many
  int64_t shard = 0, shards = 1;  // which of the process's shards or grains of that batch, of how many
  double rate_factor = 1;         // of the rates of all groups
};

class StepScalars {
 public:
  /// Keeps references to `spec` and `course`. Random draws follow from the places of rows in a batch, which `ranks`
  /// divide; `place` is that of this process among them.
  StepScalars(const spec::RunSpec& spec, const spec::Course& course, int ranks, int place,
              const Entries& entries = standard_entries());

  /// Where shares are of grains: the first of this process, and what each of them counts in the mean over the ranks.
  void set_grains(int64_t first, double share_of_each);
  /// From now on set() sets the inputs of these executors. `update` may be null; `batch` then does the whole step.
  void bind(Executor& batch, Executor* update);
  /// Allocates nothing.
  void set(const StepPart& at);
  /// Of the whole run; what the last set() has set.
  double learning_rate() const { return learning_rate_; }
  double momentum() const { return momentum_; }

 private:
  struct Input {
    Executor* executor;
    std::string name;
    std::function<std::variant<double, int64_t>(const StepPart& at)> value;
  };
  const spec::RunSpec& spec_;
  const spec::Course& course_;
  const int place_;
  const int64_t pieces_;       // of a batch
  int64_t first_piece_;        // of this process
  double share_of_grain_ = 0;  // 0: there are none
  std::function<double(int64_t)> rate_, momentum_schedule_;
  std::vector<std::pair<std::string, std::function<double(int64_t)>>> group_rates_;  // by input
  std::vector<Input> inputs_;
  double learning_rate_ = 0, momentum_ = 0;
};

}  // namespace weft::step
