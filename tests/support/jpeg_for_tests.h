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

/// `interleaved`: `channels` bytes per pixel, 1 (grey), 3 (RGB) or 4 (CMYK).
inline std::string jpeg_of(uint32_t width, uint32_t height, int channels, const uint8_t* interleaved) {
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
