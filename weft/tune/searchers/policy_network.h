// A policy that makes one decision after the other, each knowing those before: an LSTM whose output chooses among the
// values of the next decision (Zoph and Le 2017, "Neural architecture search with reinforcement learning"). It is a
// graph of weft's, and learns by proximal policy optimisation (Schulman et al. 2017, "Proximal policy optimization
// algorithms", equation 7) with a bonus for entropy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/compile/compile.h"
#include "weft/library/library.h"
#include "weft/runtime/executor.h"

namespace weft::tune {

class PolicyNetwork {
 public:
  /// `choices`: how many values each decision has. Keeps a reference to the library.
  PolicyNetwork(const Library& library, std::vector<int64_t> choices, uint64_t seed);

  /// Of each value of each decision, where those before it are these.
  std::vector<std::vector<double>> log_probabilities(const std::vector<int64_t>& decisions);

  /// Decisions that were made, and how much better than usual what came of them was.
  struct Sample {
    std::vector<int64_t> decisions;
    std::vector<bool> counts;  // of each: whether it decided anything
    double advantage = 0;
    friend bool operator==(const Sample&, const Sample&) = default;
  };
  static constexpr int64_t kBatch = 8;  // samples that it learns from at a time
  /// `entropy`: the weight of the bonus for it.
  void learn(const std::vector<Sample>& batch, double entropy);

  /// What it has learned so far, to go back to.
  struct Memory {
    std::map<std::string, Tensor> tensors;
    int64_t steps = 0;
  };
  Memory memory() const;
  void go_back_to(const Memory& memory);

 private:
  /// A graph that runs; the executor refers to what is beside it.
  struct Running {
    Running(const Graph& graph, const Device& device)
        : step(compile(graph, device, {})), executor(step.graph, step.plan, device) {}
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    const CompiledStep step;
    Executor executor;
  };
  Graph forward_graph(int64_t batch, ValueId& log_probabilities) const;
  Graph learning_graph() const;
  /// [decisions, samples]: the value that was chosen before, among all of all decisions; 0 at the beginning.
  std::vector<int32_t> tokens(const std::vector<const std::vector<int64_t>*>& all) const;
  int64_t columns() const { return static_cast<int64_t>(choices_.size()) * most_; }
  /// 0 where a decision has the value, else far below.
  std::vector<float> mask(int64_t batch) const;

  const Library& library_;
  const std::vector<int64_t> choices_;
  int64_t most_ = 1, values_ = 1;  // values of a decision at most; of all together, and one for the beginning
  std::unique_ptr<Device> device_;
  State state_;
  std::optional<Running> asks_, learns_;
  int64_t steps_ = 0;
};

}  // namespace weft::tune
