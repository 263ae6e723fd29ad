#include "weft/data/pictures/mask.h"

#include <png.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/data/pictures/image_decoders.h"

namespace weft::data {

Image read_mask(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  const std::string shown = path.string();
  struct Guard {
    png_image image{};
    ~Guard() { png_image_free(&image); }
  } guard;
  png_image& png = guard.image;
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0)
    fail(ErrorKind::data, "'{}' is no PNG file or a damaged one ({}); masks are PNG files, whose values are exact",
         shown, png.message);
  check_dimensions(shown, png.width, png.height);
  const bool palette = (png.format & PNG_FORMAT_FLAG_COLORMAP) != 0;
  if (!palette && (png.format & (PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA | PNG_FORMAT_FLAG_LINEAR)) != 0)
    fail(ErrorKind::data,
         "'{}' is no mask: want one number of 8 bits or fewer per pixel, the class (grey or palette PNG), got {}",
         shown,
         (png.format & PNG_FORMAT_FLAG_LINEAR) != 0  ? "16 bits"
         : (png.format & PNG_FORMAT_FLAG_COLOR) != 0 ? "colours"
                                                     : "transparency");
  // Of palettes and of grey values of up to 8 bits, libpng's indices into its own table are the numbers in the file.
  png.format = PNG_FORMAT_RGB_COLORMAP;
  Image mask{1, png.height, png.width, {}};
  mask.pixels.resize(PNG_IMAGE_SIZE(png));
  std::vector<uint8_t> colors(PNG_IMAGE_COLORMAP_SIZE(png));
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&png, &black, mask.pixels.data(), 0, colors.data()) == 0 || PNG_IMAGE_FAILED(png))
    fail(ErrorKind::data, "'{}' is a damaged or truncated PNG file ({}); copy it again", shown, png.message);
  return mask;
}

Image resize_mask(const Image& mask, int64_t height, int64_t width) {
  Image result{1, height, width, {}};
  result.pixels.reserve(static_cast<size_t>(height * width));
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* row = mask.pixels.data() + (2 * y + 1) * mask.height / (2 * height) * mask.width;
    for (int64_t x = 0; x < width; ++x) result.pixels.push_back(row[(2 * x + 1) * mask.width / (2 * width)]);
  }
  return result;
}

}  // namespace weft::data
