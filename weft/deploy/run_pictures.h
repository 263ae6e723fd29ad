// How a run makes its input from pictures, for models that prepare them without the run's data.
#pragma once

#include <optional>

#include "weft/engine/picture_input.h"
#include "weft/spec/data_description.h"

namespace weft::deploy {

/// nullopt where the run reads no pictures u8 (C,H,W), or does not normalise them.
std::optional<engine::PictureInput> run_pictures(const spec::DataDescription& data);

}  // namespace weft::deploy
