// How a run makes its input from pictures, for models that prepare them without the run's data.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "weft/engine/picture_input.h"
#include "weft/spec/data_description.h"

namespace weft::deploy {

/// nullopt where the run reads no pictures u8 (C,H,W), or does not normalise them.
std::optional<engine::PictureInput> run_pictures(const spec::DataDescription& data);

/// Metadata of a file whose form has no place for pictures: the shorter side they are resized to, and how a JPEG is
/// decoded, beside their mean and deviation.
inline constexpr const char* kResizeMetadata = "resize";
inline constexpr const char* kDecodeMetadata = "decode";
std::map<std::string, std::string> picture_metadata(const engine::PictureInput& pictures);

}  // namespace weft::deploy
