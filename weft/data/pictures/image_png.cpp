// PNG, read and written, through libpng's simplified interface, which returns errors instead of jumping.
#include <png.h>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/data/pictures/image_decoders.h"
#include "weft/data/pictures/orientation.h"

namespace weft::data {

Image decode_png(const std::string& path, std::span<const uint8_t> bytes) {
  struct Guard {
    png_image image{};
    ~Guard() { png_image_free(&image); }
  } guard;
  png_image& png = guard.image;
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0)
    fail(ErrorKind::data, "'{}' is a damaged PNG file ({}); copy it again", path, png.message);
  check_dimensions(path, png.width, png.height);
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // as every other reader takes 16 bits where the file says no gamma
  Image image;
  image.channels = (png.format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1;
  image.width = png.width;
  image.height = png.height;
  png.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  const auto area = static_cast<size_t>(png.width) * png.height, channels = static_cast<size_t>(image.channels);
  std::vector<uint8_t> interleaved(area * channels);
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&png, &black, interleaved.data(), 0, nullptr) == 0 || PNG_IMAGE_FAILED(png))
    fail(ErrorKind::data, "'{}' is a damaged or truncated PNG file ({}); copy it again", path, png.message);
  image.pixels.resize(interleaved.size());
  for (size_t pixel = 0; pixel < area; ++pixel)
    for (size_t channel = 0; channel < channels; ++channel)
      image.pixels[channel * area + pixel] = interleaved[pixel * channels + channel];
  return upright(std::move(image), png_orientation(bytes));
}

void write_png(const std::filesystem::path& path, const Image& image) {
  check(image.channels == 1 || image.channels == 3, "a picture is grey or RGB");
  const auto area = static_cast<size_t>(image.height * image.width), channels = static_cast<size_t>(image.channels);
  std::vector<uint8_t> interleaved(area * channels);
  for (size_t pixel = 0; pixel < area; ++pixel)
    for (size_t channel = 0; channel < channels; ++channel)
      interleaved[pixel * channels + channel] = image.pixels[channel * area + pixel];
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t bytes = 0;
  std::string content;
  const auto encode = [&](void* target) {
    if (png_image_write_to_memory(&png, target, &bytes, 0, interleaved.data(), 0, nullptr) == 0)
      fail(ErrorKind::io, "cannot write '{}': {}", path.string(), png.message);
  };
  encode(nullptr);  // how many bytes it takes
  content.resize(bytes);
  encode(content.data());
  write_atomically(path, std::string_view(content).substr(0, bytes));
}

}  // namespace weft::data
