// Loss scaling: the loss is multiplied by a scale, which the step carries as a state, before differentiation. The
// gradients are then divided by the scale. A step with a gradient that is not finite changes only the scale.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "weft/device/state.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

/// The value to differentiate instead of the loss.
ValueId scaled_loss(Graph& graph, const spec::RunSpec& spec, ValueId loss);

/// Divides the gradients by the scale and adds the update of the scale, whose slots go to `slots`. From then on the
/// builder's updates do nothing where an element of the gradients is not finite, and counters leave such steps out.
void unscale_gradients(UpdateBuilder& builder, const spec::LossScalingSpec& spec,
                       std::vector<TrainedParameter>& parameters, std::vector<SlotSpec>& slots);

/// Reads the loss scale from the state of a run, as it is at each call; without allocating.
class LossScale {
 public:
  /// Keeps a reference. For a state without a scale is_used() is false, and no other member may be called.
  explicit LossScale(const State& state);
  bool is_used() const { return is_used_; }
  double scale() const;
  int64_t updates() const { return count(updates_); }
  int64_t skipped() const { return count(skipped_); }
  /// Latest steps skipped in a row.
  int64_t skipped_in_a_row() const { return std::max<int64_t>(0, -count(streak_)); }

 private:
  int64_t count(const std::string& name) const;

  const State& state_;
  const std::string scale_, streak_, updates_, skipped_;
  const bool is_used_;
};

}  // namespace weft::step
