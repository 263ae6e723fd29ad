// Loads initial weights from a file instead of drawing them from the seed, to continue from a network trained
// elsewhere.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/device/state.h"
#include "weft/models/model.h"

namespace weft::run {

enum class Head {
  must_fit,
  may_differ,  // with another number of classes, the last layer stays as it is in the state
};

/// Replaces the parameters and running statistics in `state` by those of a safetensors file with PyTorch's names.
/// Returns lines for the user that say what was left out. Error(data) where the file lacks a tensor, has one too many,
/// or has one of another shape.
std::vector<std::string> load_weights(State& state, const std::vector<models::ParameterSpec>& parameters,
                                      const std::filesystem::path& path, Head head);

}  // namespace weft::run
