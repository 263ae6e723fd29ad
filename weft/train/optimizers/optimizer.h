// Optimisers: each adds to the graph of a step one update node per parameter and the state that it carries along.
#pragma once

#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/models/model.h"
#include "weft/train/run_spec.h"

namespace weft::train {

/// A parameter of the graph with its gradient.
struct TrainedParameter {
  std::string name;
  ValueId value, gradient;
  bool decay = true;  // false for bias and norm
};

/// A state that starts at zero, such as a momentum: "optimizer/velocity/conv1.weight".
struct SlotSpec {
  std::string name;
  TensorType type;
};

inline constexpr const char* kSlotPrefix = "optimizer/";

/// Momentum SGD; slots "optimizer/velocity/NAME".
std::vector<SlotSpec> add_sgd(Graph& graph, const OptimizerSpec& spec, const std::vector<TrainedParameter>& parameters,
                              ValueId learning_rate);

/// AdamW (Loshchilov and Hutter 2019); slots "optimizer/first_moment/NAME" and "optimizer/second_moment/NAME".
/// `step` is an i64 scalar that counts from 0.
std::vector<SlotSpec> add_adamw(Graph& graph, const OptimizerSpec& spec,
                                const std::vector<TrainedParameter>& parameters, ValueId learning_rate, ValueId step);

/// The optimiser that the spec names, with its scalar inputs "learning_rate" and, where it counts steps, "step".
std::vector<SlotSpec> add_optimizer(Graph& graph, const OptimizerSpec& spec,
                                    const std::vector<TrainedParameter>& parameters);

}  // namespace weft::train
