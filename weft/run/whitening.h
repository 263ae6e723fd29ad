// Whitening: initial filters from the training images, which make the pixels of a patch uncorrelated and of equal
// variance.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/data/load/loader.h"
#include "weft/device/state.h"
#include "weft/models/model.h"

namespace weft::run {

/// Second moments (about 0, mean over all places of all images) of the pixels of patches of `kernel_height` x
/// `kernel_width`. Row-major [D,D] in the order of a convolution's weights, with D = C kernel_height kernel_width. Uses
/// at most 5000 images, which the seed chooses, as the loader gives them.
std::vector<double> patch_moments(const data::Loader& images, int64_t kernel_height, int64_t kernel_width,
                                  uint64_t seed);

/// Sets the parameters whose initialiser is `whitening` (models/model.h). The loader must do nothing but normalise.
/// Returns whether there are such parameters. Error(usage) where the samples are no images.
bool start_whitening(State& state, const std::vector<models::ParameterSpec>& parameters, const data::Loader& images,
                     uint64_t seed);

}  // namespace weft::run
