// How a picture becomes what a network reads: scaled, cut to its middle, normalised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace weft::engine {

struct PictureInput {
  int64_t channels = 3, height = 0, width = 0;  // of what the network reads, f32[channels,height,width]
  int64_t resize = 0;           // the shorter side before the middle is cut; 0: the picture is fitted to the size
  bool decodes_exactly = true;  // else a JPEG may be decoded no larger than needed, as it was in training
  std::vector<float> mean, deviation;  // of each channel, of pixels in [0, 1]
  friend bool operator==(const PictureInput&, const PictureInput&) = default;

  int64_t elements() const { return channels * height * width; }
};

/// Error(data) beginning with `name` where sizes are none, or the statistics are not those of so many channels.
void check(const PictureInput& input, const std::string& name);

/// Reads a PNG, JPEG, PGM or PPM file and writes elements() numbers to `target`: (pixel / 255 - mean) / deviation, as
/// training does. Throws as data::read_image().
void read_picture(const std::filesystem::path& path, const PictureInput& input, std::span<float> target);

}  // namespace weft::engine
