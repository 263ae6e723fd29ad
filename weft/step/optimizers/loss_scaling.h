// Loss scaling: the loss is differentiated times a scale that the step carries as a state, the gradients are divided by
// it, and a step in which one of them is not finite changes nothing but the scale.
#pragma once

#include <cstdint>

#include "weft/device/state.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

/// What is to be differentiated in the place of the loss.
ValueId scaled_loss(Graph& graph, const spec::RunSpec& spec, ValueId loss);

/// Divides the gradients by the scale and adds the update of the scale, whose slots go to `slots`. The builder's
/// updates do nothing from then on where an element of the gradients is not finite, and count without such steps.
void unscale_gradients(UpdateBuilder& builder, const spec::LossScalingSpec& spec,
                       std::vector<TrainedParameter>& parameters, std::vector<SlotSpec>& slots);

/// What the state of a run says about its scale; follows it while it is trained, as long as it is not replaced.
class LossScale {
 public:
  /// Of a state without a scale: is_used() is false, and nothing else may be asked.
  explicit LossScale(const State& state);
  bool is_used() const { return scale_ != nullptr; }
  double scale() const { return static_cast<double>(*scale_); }
  int64_t updates() const { return *updates_; }
  int64_t skipped() const { return *skipped_; }
  /// Steps just now that were skipped, one after the other.
  int64_t skipped_in_a_row() const { return *streak_ < 0 ? -*streak_ : 0; }

 private:
  const float* scale_ = nullptr;
  const int64_t *streak_ = nullptr, *updates_ = nullptr, *skipped_ = nullptr;
};

}  // namespace weft::step
