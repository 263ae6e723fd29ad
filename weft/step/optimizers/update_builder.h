// The tools with which optimisers are written: slots, scalar inputs, blends of states.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/ops/ops.h"
#include "weft/step/optimizers/optimizer.h"

namespace weft::step {

/// A parameter with the settings of its group.
struct UpdatedParameter {
  std::string name;
  ValueId value, gradient;
  ValueId learning_rate;    // f32[], the group's factor included
  double weight_decay = 0;  // 0 where the parameter is spared
  bool adapts = true;       // false for bias and norm: lamb and lars do not scale their steps
  bool hidden = false;
  int64_t parts = 1;  // see TrainedParameter
};

class UpdateBuilder {
 public:
  UpdateBuilder(Graph& graph, const spec::OptimizerSpec& optimizer, std::string counter)
      : graph_(graph), spec_(optimizer), counter_(std::move(counter)) {}

  Graph& graph() { return graph_; }
  const spec::OptimizerSpec& spec() const { return spec_; }

  /// A scalar input, made at the first call.
  ValueId scalar(const std::string& name, DType dtype = DType::f32);
  /// A constant, or, where a schedule moves it, the scalar input "momentum".
  ValueId momentum();
  /// i64, counts updates from 0.
  ValueId counter() { return updates_.valid() ? updates_ : scalar(counter_, DType::i64); }
  /// From now on updates leave all states as they are where `apply` (f32[]) is 0; `updates` (i64[]) counts the others.
  void apply_where(ValueId apply, ValueId updates) {
    apply_ = apply;
    updates_ = updates;
  }
  /// For updates made without blend(): invalid where updates always happen.
  ValueId apply() const { return apply_; }
  ValueId constant(double value);
  /// 1 - beta^t with t = counter + 1, to f32 precision for every t.
  ValueId bias_correction(double beta);

  /// The state "optimizer/SLOT/NAME" of the parameter's shape; `copies`: it begins as a copy of the parameter.
  ValueId slot(const std::string& slot, const std::string& parameter, bool copies = false);
  /// Declares the successor of a slot or, without a slot, of the parameter.
  void set_next(const std::string& slot, const std::string& parameter, ValueId next);
  void set_next(const std::string& parameter, ValueId next) { next_[parameter] = next; }
  /// The parameter or statistic as it is after all updates so far.
  ValueId latest(const std::string& name) const;

  /// state' = keep * state + take * value
  ValueId blend(ValueId state, ValueId value, ValueId keep, ValueId take, const std::string& name) {
    return ops::blend_update(graph_, state, value, keep, take, name, apply_);
  }
  /// slot' = keep * slot + take * value; declares the slot and gives its successor.
  ValueId blend_slot(const std::string& slot, const std::string& parameter, ValueId value, ValueId keep, ValueId take);
  /// An exponential average: slot' = share * slot + (1 - share) * value.
  ValueId average_slot(const std::string& slot, const std::string& parameter, ValueId value, double share);
  /// parameter' = (1 - rate * decay) * parameter - rate * direction.
  void descend(const UpdatedParameter& parameter, ValueId direction, ValueId rate, double decay = 0);
  /// gradient + weight_decay * parameter: the L2 form of the decay.
  ValueId decayed_gradient(const UpdatedParameter& parameter);

  /// Adds the declared successors to the graph; gives the slots.
  std::vector<SlotSpec> finish();

 private:
  Graph& graph_;
  const spec::OptimizerSpec& spec_;
  std::string counter_;
  ValueId apply_, updates_;
  std::vector<SlotSpec> slots_;
  std::map<std::string, ValueId> next_;  // by state
};

/// Each parameter with the rate and the decay of its group.
std::vector<UpdatedParameter> assign_groups(UpdateBuilder& builder, const std::vector<TrainedParameter>& parameters);

/// f32[]: of the whole tensor of which this is the part of one of `parts` ranks; of all of it where that is 1.
ValueId squared_norm_of_parts(Graph& graph, ValueId part, int64_t parts);

/// Bounds gradients as the spec says: first each element, then their common norm, which becomes an output where it is
/// bounded or `records_norm`.
void clip_gradients(Graph& graph, const spec::ClipSpec& spec, bool records_norm,
                    std::vector<TrainedParameter>& parameters);

/// Muon uses it too (adam.cpp).
void add_adam(UpdateBuilder& builder, const std::vector<UpdatedParameter>& parameters, bool decoupled);

void add_lookahead(UpdateBuilder& builder, const std::vector<UpdatedParameter>& parameters);
/// Averages the named states as they are after the step.
void add_ema(UpdateBuilder& builder, const std::vector<std::string>& names);

}  // namespace weft::step
