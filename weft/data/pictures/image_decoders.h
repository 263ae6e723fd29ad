// The decoders behind read_image(). `path` is for messages.
#pragma once

#include <span>
#include <string>

#include "weft/data/pictures/image.h"

namespace weft::data {

Image decode_png(const std::string& path, std::span<const uint8_t> bytes);
/// `shortest` as in read_image().
Image decode_jpeg(const std::string& path, std::span<const uint8_t> bytes, int64_t shortest);

/// Error(data) for no pixels, or for more than 64 megapixels: a damaged header must not make weft ask for all memory.
void check_dimensions(const std::string& path, int64_t width, int64_t height);

}  // namespace weft::data
