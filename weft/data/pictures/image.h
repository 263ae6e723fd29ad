// Pictures: read from PNG, JPEG, PGM and PPM files, resized, written as PNG.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "weft/tensor/shape.h"

namespace weft::data {

struct Image {
  int64_t channels = 0, height = 0, width = 0;  // 1 channel (grey) or 3 (red, green, blue)
  std::vector<uint8_t> pixels;                  // in C,H,W order
};

/// The kind is told by the content, not by the name. Transparent pixels of a PNG are laid on black, 16 bits become 8,
/// CMYK becomes RGB. A JPEG is turned upright as its EXIF data say. Of a JPEG every pixel is what libjpeg's full
/// decoding gives (accurate integer DCT, smooth upsampling of colours: Pillow's to the byte); with a `shortest` side it
/// may be decoded to a smaller size (in eighths) that still has it, which is faster and changes pixels a little.
/// Error(io) for a missing file, Error(data) for a damaged one, another kind or more than 64 megapixels.
Image read_image(const std::filesystem::path& path, int64_t shortest = 0);

/// The same of the bytes of a file, called `name` in messages.
Image decode_image(const std::string& name, std::span<const uint8_t> bytes, int64_t shortest = 0);

/// The bytes of a JPEG file (baseline, 4:2:0), of quality 1 to 100 as libjpeg counts. Error(data) for an image that
/// JPEG cannot hold: more than 65535 pixels on a side.
std::vector<uint8_t> encode_jpeg(const Image& image, int quality);

/// As a PNG file. Error(io) where it cannot be written.
void write_png(const std::filesystem::path& path, const Image& image);

/// Bilinear with antialiasing: shrinking averages over all pixels that fall together (as Pillow's BILINEAR does).
Image resize(const Image& image, int64_t height, int64_t width);

/// Grey to three equal channels, or RGB to luma (ITU-R BT.601: 0.299 R + 0.587 G + 0.114 B). Error(shape) for other
/// numbers of channels.
Image with_channels(const Image& image, int64_t channels);

/// Scaled so that the shorter side has this length. What is more than 16 times as long as wide is cut to its middle
/// first.
Image resize_shorter(const Image& image, int64_t shorter);

/// Copies the middle of (height,width) in C,H,W order.
void copy_middle(const Image& image, int64_t height, int64_t width, std::span<uint8_t> destination);

/// Both, to the shape (C,H,W) that a model reads.
Image fit(const Image& image, const Shape& sample_shape);

}  // namespace weft::data
