// Small pictures as files, for tests of what is read from them.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/jpeg_for_tests.h"

namespace weft::cli_tests {

/// Pixels that all differ, so that it matters how a picture is made smaller.
inline std::string noise(uint32_t seed, int count) {
  std::string pixels;
  for (int at = 0; at < count; ++at) {
    seed = seed * 1664525u + 1013904223u;
    pixels += static_cast<char>((seed >> 16) % 160);
  }
  return pixels;
}

inline std::string grey_jpeg(int width, int height, const std::string& pixels) {
  return jpeg_of(static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1,
                 reinterpret_cast<const uint8_t*>(pixels.data()));
}

/// A grey PGM.
inline std::string pgm(int width, int height, const std::string& pixels) {
  return "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n" + pixels;
}

}  // namespace weft::cli_tests
