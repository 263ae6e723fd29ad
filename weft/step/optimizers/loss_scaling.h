// Loss scaling: the loss is differentiated times a scale that the step carries as a state, the gradients are divided by
// it, and a step in which one of them is not finite changes nothing but the scale.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "weft/device/state.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

/// What is to be differentiated in the place of the loss.
ValueId scaled_loss(Graph& graph, const spec::RunSpec& spec, ValueId loss);

/// Divides the gradients by the scale and adds the update of the scale, whose slots go to `slots`. The builder's
/// updates do nothing from then on where an element of the gradients is not finite, and count without such steps.
void unscale_gradients(UpdateBuilder& builder, const spec::LossScalingSpec& spec,
                       std::vector<TrainedParameter>& parameters, std::vector<SlotSpec>& slots);

/// What the state of a run says about its scale, at each call as it is then; without allocating.
class LossScale {
 public:
  /// Keeps a reference. Of a state without a scale: is_used() is false, and nothing else may be asked.
  explicit LossScale(const State& state);
  bool is_used() const { return is_used_; }
  double scale() const;
  int64_t updates() const { return count(updates_); }
  int64_t skipped() const { return count(skipped_); }
  /// Steps just now that were skipped, one after the other.
  int64_t skipped_in_a_row() const { return std::max<int64_t>(0, -count(streak_)); }

 private:
  int64_t count(const std::string& name) const;

  const State& state_;
  const std::string scale_, streak_, updates_, skipped_;
  const bool is_used_;
};

}  // namespace weft::step
