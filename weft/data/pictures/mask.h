// Pictures whose pixels are numbers of classes: read from PNG, resized, written as PNG.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "weft/data/pictures/image.h"

namespace weft::data {

/// One channel: the grey values as they are stored (1 to 8 bits, not scaled to 255), or the indices into a palette.
/// Error(io) for a missing file, Error(data) for a damaged one, another kind, colours without a palette or 16 bits.
Image read_mask(const std::filesystem::path& path);

/// Each pixel that of the nearest one: classes are never mixed.
Image resize_mask(const Image& mask, int64_t height, int64_t width);

}  // namespace weft::data
