// Reads a picture from a file, for `weft predict`: PNG, JPEG, PGM and PPM.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "weft/tensor/shape.h"

namespace weft::data {

struct Image {
  int64_t channels = 0, height = 0, width = 0;  // 1 channel (grey) or 3 (red, green, blue)
  std::vector<uint8_t> pixels;                  // in C,H,W order
};

/// The kind is told by the content, not by the name. Transparent pixels of a PNG are laid on black, 16 bits become 8.
/// Error(io) for a missing file, Error(data) for a damaged one, another kind or more than 64 megapixels.
Image read_image(const std::filesystem::path& path);

/// Bilinear with antialiasing: shrinking averages over all pixels that fall together (as Pillow's BILINEAR does).
Image resize(const Image& image, int64_t height, int64_t width);

/// Grey to three equal channels, or RGB to luma (ITU-R BT.601: 0.299 R + 0.587 G + 0.114 B). Error(shape) for other
/// numbers of channels.
Image with_channels(const Image& image, int64_t channels);

/// Both, to the shape (C,H,W) that a model reads.
Image fit(const Image& image, const Shape& sample_shape);

}  // namespace weft::data
