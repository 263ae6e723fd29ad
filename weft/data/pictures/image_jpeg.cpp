// Decodes JPEG through libjpeg.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/data/pictures/image_decoders.h"
#include "weft/data/pictures/jpeg_errors.h"
#include "weft/data/pictures/orientation.h"
// Behind libjpeg's own header.
#include <jerror.h>

namespace weft::data {

namespace {

/// Warnings are common in files that decode well, save those that say that data is missing.
void note_warning(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) JpegErrors::of(info).truncated = true;
}

/// Everything that lives across a jump is a member: it keeps its value and is destroyed as usual.
struct Decoder {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  std::vector<uint8_t> line;

  ~Decoder() { jpeg_destroy_decompress(&info); }

  /// The header; false where libjpeg gave up.
  bool begin(std::span<const uint8_t> bytes) {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = JpegErrors::jump_back;
    errors.base.emit_message = note_warning;
    if (setjmp(errors.back) != 0) return false;
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes.data(), bytes.size());
    jpeg_save_markers(&info, JPEG_APP0 + 1, 0xffff);  // EXIF
    jpeg_read_header(&info, TRUE);
    return true;
  }

  /// The pixels, into `image`, whose size has been set; false where libjpeg gave up.
  bool read(Image& image) {
    if (setjmp(errors.back) != 0) return false;
    jpeg_start_decompress(&info);
    const auto area = static_cast<size_t>(image.height * image.width), width = static_cast<size_t>(image.width);
    const bool inverted = info.saw_Adobe_marker;  // Adobe's CMYK counts light, not ink
    while (info.output_scanline < info.output_height) {
      uint8_t* rows[] = {line.data()};
      uint8_t* out = image.pixels.data() + info.output_scanline * width;
      jpeg_read_scanlines(&info, rows, 1);
      const uint8_t* in = line.data();
      if (info.out_color_space == JCS_GRAYSCALE) {
        std::copy_n(in, width, out);
      } else if (info.out_color_space == JCS_RGB) {
        for (size_t x = 0; x < width; ++x, in += 3) {
          out[x] = in[0];
          out[x + area] = in[1];
          out[x + 2 * area] = in[2];
        }
      } else {
        for (size_t x = 0; x < width; ++x, in += 4)
          for (size_t channel = 0; channel < 3; ++channel) {
            const int ink = inverted ? in[channel] : 255 - in[channel], black = inverted ? in[3] : 255 - in[3];
            out[x + channel * area] = static_cast<uint8_t>((ink * black + 127) / 255);
          }
      }
    }
    jpeg_finish_decompress(&info);
    return true;
  }

  /// By the first EXIF segment.
  int orientation() const {
    for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr; marker = marker->next)
      if (const int found = exif_orientation({marker->data, marker->data_length}); found != 1) return found;
    return 1;
  }

  /// Decodes to the smallest size, in eighths, whose shorter side is at least `shortest`.
  void choose_scale(int64_t shortest) {
    if (shortest <= 0) return;
    const int64_t side = std::min(info.image_width, info.image_height);
    info.scale_denom = 8;
    info.scale_num = static_cast<unsigned>(std::clamp<int64_t>((8 * shortest + side - 1) / side, 1, 8));
  }
};

}  // namespace

Image decode_jpeg(const std::string& path, std::span<const uint8_t> bytes, int64_t shortest) {
  Decoder decoder;
  const auto damaged = [&] {
    fail(ErrorKind::data, "'{}' is a damaged JPEG file ({}); copy it again", path, decoder.errors.message);
  };
  if (!decoder.begin(bytes)) damaged();
  const int orientation = decoder.orientation();  // the end of decoding frees the segments
  check_dimensions(path, decoder.info.image_width, decoder.info.image_height);
  const int components = decoder.info.num_components;
  if (components != 1 && components != 3 && components != 4)
    fail(ErrorKind::data, "'{}' is a JPEG with {} colour components; convert it to RGB or grey", path, components);
  decoder.info.out_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  decoder.choose_scale(shortest);
  jpeg_calc_output_dimensions(&decoder.info);
  Image image;
  image.channels = components == 1 ? 1 : 3;
  image.width = decoder.info.output_width;
  image.height = decoder.info.output_height;
  image.pixels.resize(static_cast<size_t>(image.channels * image.height * image.width));
  decoder.line.resize(static_cast<size_t>(components * image.width));
  if (!decoder.read(image)) damaged();
  if (decoder.errors.truncated) fail(ErrorKind::data, "'{}' is a truncated or damaged JPEG file; copy it again", path);
  return upright(std::move(image), orientation);
}

}  // namespace weft::data
