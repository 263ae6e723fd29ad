// JPEG files made by libjpeg itself, at its best quality.
#pragma once

// libjpeg's header needs <cstdio> before it.
#include <cstdio>
//
#include <jpeglib.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace weft::cli_tests {

/// An APP1 segment that says how the camera was held, in either order of bytes.
inline std::string exif_segment(int orientation, bool little_endian = true) {
  const std::string value(1, static_cast<char>(orientation));
  if (little_endian)
    return std::string("Exif\0\0II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 24) + value +
           std::string("\0\0\0\0\0\0\0", 7);
  return std::string("Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 25) + value +
         std::string("\0\0\0\0\0\0", 6);
}

/// `interleaved`: `channels` bytes per pixel, 1 (grey), 3 (RGB) or 4 (CMYK).
/// `exif`: an APP1 segment; empty: none.
inline std::string jpeg_of(uint32_t width, uint32_t height, int channels, const uint8_t* interleaved,
                           const std::string& exif = "") {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = channels;
  info.in_color_space = channels == 3 ? JCS_RGB : channels == 4 ? JCS_CMYK : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  if (!exif.empty())
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  for (uint32_t y = 0; y < height; ++y) {
    JSAMPROW row = const_cast<uint8_t*>(interleaved) + y * width * static_cast<uint32_t>(channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<const char*>(memory), size);
  std::free(memory);
  return file;
}

}  // namespace weft::cli_tests
