// JPEG through libjpeg, whose default error handler ends the process: ours notes the message and jumps back.
#include <csetjmp>
#include <cstdio>
// libjpeg's header needs <cstdio> before it.
#include <jerror.h>
#include <jpeglib.h>

#include "weft/base/error.h"
#include "weft/data/image_decoders.h"

namespace weft::data {

namespace {

struct ErrorManager {
  jpeg_error_mgr base;  // first, so that libjpeg's pointer to it is a pointer to this
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  bool truncated;
};

ErrorManager& manager_of(j_common_ptr info) { return *reinterpret_cast<ErrorManager*>(info->err); }

[[noreturn]] void jump_back(j_common_ptr info) {
  info->err->format_message(info, manager_of(info).message);
  std::longjmp(manager_of(info).back, 1);
}

/// Warnings are common in files that decode well, save those that say that data is missing.
void note_warning(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) manager_of(info).truncated = true;
}

/// Everything that lives across a jump is a member: it keeps its value and is destroyed as usual.
struct Decoder {
  jpeg_decompress_struct info{};
  ErrorManager errors{};
  std::vector<uint8_t> line;

  ~Decoder() { jpeg_destroy_decompress(&info); }

  /// The header; false where libjpeg gave up.
  bool begin(std::span<const uint8_t> bytes) {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = jump_back;
    errors.base.emit_message = note_warning;
    if (setjmp(errors.back) != 0) return false;
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes.data(), bytes.size());
    jpeg_read_header(&info, TRUE);
    return true;
  }

  /// The pixels, into `image`, whose size has been set; false where libjpeg gave up.
  bool read(Image& image) {
    if (setjmp(errors.back) != 0) return false;
    info.out_color_space = image.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_start_decompress(&info);
    const auto area = static_cast<size_t>(image.height * image.width), channels = static_cast<size_t>(image.channels);
    while (info.output_scanline < info.output_height) {
      uint8_t* rows[] = {line.data()};
      const size_t offset = info.output_scanline * static_cast<size_t>(image.width);
      jpeg_read_scanlines(&info, rows, 1);
      for (size_t at = 0; at < line.size(); ++at)
        image.pixels[at % channels * area + offset + at / channels] = line[at];
    }
    jpeg_finish_decompress(&info);
    return true;
  }
};

}  // namespace

Image decode_jpeg(const std::string& path, std::span<const uint8_t> bytes) {
  Decoder decoder;
  const auto damaged = [&] {
    fail(ErrorKind::data, "'{}' is a damaged JPEG file ({}); copy it again", path, decoder.errors.message);
  };
  if (!decoder.begin(bytes)) damaged();
  check_dimensions(path, decoder.info.image_width, decoder.info.image_height);
  if (decoder.info.num_components != 1 && decoder.info.num_components != 3)
    fail(ErrorKind::data, "'{}' is a JPEG with {} colour components (CMYK?); convert it to RGB or grey", path,
         decoder.info.num_components);
  Image image;
  image.channels = decoder.info.num_components;
  image.width = decoder.info.image_width;
  image.height = decoder.info.image_height;
  image.pixels.resize(static_cast<size_t>(image.channels * image.height * image.width));
  decoder.line.resize(static_cast<size_t>(image.channels * image.width));
  if (!decoder.read(image)) damaged();
  if (decoder.errors.truncated) fail(ErrorKind::data, "'{}' is a truncated or damaged JPEG file; copy it again", path);
  return image;
}

}  // namespace weft::data
