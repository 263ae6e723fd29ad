// Encodes JPEG through libjpeg.
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/data/pictures/image.h"
#include "weft/data/pictures/jpeg_errors.h"

namespace weft::data {

namespace {

/// Everything that lives across a jump is a member: it keeps its value and is freed as usual.
struct JpegEncoder {
  jpeg_compress_struct info{};
  JpegErrors errors{};
  std::vector<uint8_t> line;
  unsigned char* bytes = nullptr;  // libjpeg's, made by malloc
  unsigned long size = 0;

  ~JpegEncoder() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }

  /// False where libjpeg gave up.
  bool write(const Image& image, int quality) {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = JpegErrors::jump_back;
    if (setjmp(errors.back) != 0) return false;
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &bytes, &size);
    info.image_width = static_cast<JDIMENSION>(image.width);
    info.image_height = static_cast<JDIMENSION>(image.height);
    info.input_components = static_cast<int>(image.channels);
    info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    info.optimize_coding = TRUE;  // a tenth smaller; time that is spent once
    jpeg_start_compress(&info, TRUE);
    const auto area = static_cast<size_t>(image.height * image.width), width = static_cast<size_t>(image.width);
    const auto channels = static_cast<size_t>(image.channels);
    while (info.next_scanline < info.image_height) {
      const uint8_t* from = image.pixels.data() + info.next_scanline * width;
      for (size_t x = 0; x < width; ++x)
        for (size_t channel = 0; channel < channels; ++channel) line[x * channels + channel] = from[channel * area + x];
      uint8_t* rows[] = {line.data()};
      jpeg_write_scanlines(&info, rows, 1);
    }
    jpeg_finish_compress(&info);
    return true;
  }
};

}  // namespace

std::vector<uint8_t> encode_jpeg(const Image& image, int quality) {
  check(quality >= 1 && quality <= 100 && (image.channels == 1 || image.channels == 3), "what JPEG can hold");
  JpegEncoder encoder;
  encoder.line.resize(static_cast<size_t>(image.channels * image.width));
  if (!encoder.write(image, quality))
    fail(ErrorKind::data, "{}x{} pixels cannot become a JPEG file ({}); leave them as they are", image.width,
         image.height, encoder.errors.message);
  return {encoder.bytes, encoder.bytes + encoder.size};
}

}  // namespace weft::data
