// Is an op what it says? Checks for definitions, as torch.autograd.gradcheck: over its examples, the gradient against
// finite differences and each kernel against the reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/device/device.h"
#include "weft/library/library.h"

namespace weft {

/// Runs all the checks below over the op's examples. Error(numeric) with op, example, operand and values where one
/// fails; Error(usage) for an unknown op or one without examples or without a reference kernel.
void check_op(const Library& library, const std::string& name);

/// Plain values in the range; the key decides which.
Tensor draw_tensor(const TensorType& type, const OpExample::Range& range, uint64_t key);

/// "" where `actual` is near `expected` (both plain): every difference within `tolerance` of the largest expected
/// magnitude (at least `smallest_scale`); integers exactly. Else what differs most.
std::string difference(const Tensor& actual, const Tensor& expected, double tolerance, double smallest_scale = 0);

struct GradientCheck {
  bool differentiated = true;         // false: the rule refuses to differentiate this output
  std::vector<std::string> problems;  // what differs, by operand
};
/// The gradient of one output by the op's rule against central differences of its reference kernel. The loss is the
/// sum of that output times random weights, summed in double: the storage of f32 is the only error. `inputs` are plain
/// and those of the example.
GradientCheck check_gradient(const OpRegistry& registry, const Device& reference, const OpDef& op,
                             const OpExample& example, const std::vector<Tensor>& inputs, size_t output);

}  // namespace weft
