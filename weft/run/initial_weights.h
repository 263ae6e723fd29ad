// Weights from a file in place of those that the seed draws: to go on from a network trained elsewhere.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/device/state.h"
#include "weft/models/model.h"

namespace weft::run {

enum class Head {
  must_fit,
  may_differ,  // of another number of classes, the last layer is left as it is in the state
};

/// Replaces the parameters and running statistics in `state` by those of a safetensors file with PyTorch's names.
/// Returns lines for the user: what was left out. Error(data) where a tensor is absent, too many or of another shape.
std::vector<std::string> load_weights(State& state, const std::vector<models::ParameterSpec>& parameters,
                                      const std::filesystem::path& path, Head head);

}  // namespace weft::run
