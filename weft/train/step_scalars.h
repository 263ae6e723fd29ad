// The scalar inputs of a step: what the graphs of one update read besides state and batches.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/runtime/executor.h"
#include "weft/train/run_spec.h"

namespace weft::train {

class StepScalars {
 public:
  StepScalars(const RunSpec& spec, int64_t total_steps, int64_t steps_per_epoch);

  /// From now on set() sets the inputs of these executors; `update` may be null: then `batch` does the whole step.
  void bind(Executor& batch, Executor* update);
  /// For batch `part` of `step`; allocates nothing. `rate_factor` scales the rates of all groups.
  void set(int64_t step, int64_t part, double rate_factor);
  /// Of the whole run; what the last set() has set.
  double learning_rate() const { return learning_rate_; }

 private:
  struct Input {
    Executor* executor;
    std::string name;
    std::function<double(int64_t step, int64_t part, double rate_factor)> value;
  };
  const RunSpec& spec_;
  const int64_t total_steps_;
  std::function<double(int64_t)> rate_;
  std::vector<std::pair<std::string, std::function<double(int64_t)>>> group_rates_;  // by input
  std::vector<Input> inputs_;
  double learning_rate_ = 0;
};

}  // namespace weft::train
