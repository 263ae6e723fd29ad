// Reading dispatches on the first bytes; resizing and channels. The two libraries' decoders: image_png.cpp,
// image_jpeg.cpp.
#include "weft/data/pictures/image.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/data/pictures/image_decoders.h"

namespace weft::data {

namespace {

/// PGM (P5) and PPM (P6), binary: "P5 width height maxval", one white space, bytes; '#' begins a comment.
/// http://netpbm.sourceforge.net/doc/pgm.html
Image decode_pnm(const std::string& path, std::span<const uint8_t> bytes) {
  size_t at = 2;
  const auto number = [&](const char* what) {
    while (at < bytes.size() && (std::isspace(bytes[at]) || bytes[at] == '#')) {
      if (bytes[at] == '#')
        while (at < bytes.size() && bytes[at] != '\n') ++at;
      else
        ++at;
    }
    int64_t value = 0;
    const size_t begin = at;
    for (; at < bytes.size() && std::isdigit(bytes[at]) && value < (int64_t{1} << 40); ++at)
      value = value * 10 + (bytes[at] - '0');
    if (at == begin) fail(ErrorKind::data, "'{}' is a damaged PGM or PPM file: it has no {}", path, what);
    return value;
  };
  Image image;
  image.channels = bytes[1] == '6' ? 3 : 1;
  image.width = number("width");
  image.height = number("height");
  const int64_t most = number("largest value");
  ++at;  // one white space
  check_dimensions(path, image.width, image.height);
  if (most < 1 || most > 255)
    fail(ErrorKind::data, "'{}' has values up to {}; weft reads PGM and PPM with 8 bits: convert it", path, most);
  const auto area = static_cast<size_t>(image.width * image.height), channels = static_cast<size_t>(image.channels);
  if (at > bytes.size() || bytes.size() - at < area * channels)
    fail(ErrorKind::data, "'{}' is truncated: {}x{} wants {} bytes of pixels, {} follow; copy it again", path,
         image.width, image.height, area * channels, bytes.size() - std::min(at, bytes.size()));
  image.pixels.resize(area * channels);
  for (size_t pixel = 0; pixel < area; ++pixel)
    for (size_t channel = 0; channel < channels; ++channel, ++at)
      image.pixels[channel * area + pixel] =
          static_cast<uint8_t>((std::min<int64_t>(bytes[at], most) * 255 + most / 2) / most);
  return image;
}

/// Of a longer picture only the middle is kept: a strip of 1 x 100,000 pixels would become one of 100 x 10,000,000.
constexpr int64_t kLongestRatio = 16;

/// Which source positions make one target position, and how much of each: a triangle of half-width max(1, scale).
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
  int64_t end() const { return first + static_cast<int64_t>(weights.size()); }
};

std::vector<Taps> triangle_taps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(1.0, scale);
  std::vector<Taps> all(static_cast<size_t>(to));
  for (int64_t target = 0; target < to; ++target) {
    Taps& taps = all[static_cast<size_t>(target)];
    const double center = (static_cast<double>(target) + 0.5) * scale;
    taps.first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(center - reach + 0.5)));
    const int64_t end = std::min<int64_t>(from, static_cast<int64_t>(std::floor(center + reach + 0.5)));
    double sum = 0;
    for (int64_t at = taps.first; at < end; ++at) {
      const double weight = std::max(0.0, 1.0 - std::abs((static_cast<double>(at) + 0.5 - center) / reach));
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
  }
  return all;
}

}  // namespace

void check_dimensions(const std::string& path, int64_t width, int64_t height) {
  constexpr int64_t kMostPixels = int64_t{1} << 26;
  if (width < 1 || height < 1) fail(ErrorKind::data, "'{}' has no pixels ({}x{})", path, width, height);
  if (width > kMostPixels || height > kMostPixels / width)
    fail(ErrorKind::data, "'{}' says it has {}x{} pixels; weft reads up to {} megapixels: shrink it first", path, width,
         height, kMostPixels >> 20);
}

Image read_image(const std::filesystem::path& path, int64_t shortest) {
  return decode_image(path.string(), read_bytes(path), shortest);
}

Image decode_image(const std::string& shown, std::span<const uint8_t> bytes, int64_t shortest) {
  const auto begins = [&](std::initializer_list<uint8_t> magic) {
    return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
  };
  if (begins({0x89, 'P', 'N', 'G'})) return decode_png(shown, bytes);
  if (begins({0xff, 0xd8, 0xff})) return decode_jpeg(shown, bytes, shortest);
  if (begins({'P', '5'}) || begins({'P', '6'})) return decode_pnm(shown, bytes);
  if (bytes.empty()) fail(ErrorKind::data, "'{}' is empty; copy it again", shown);
  fail(ErrorKind::data, "'{}' is none of PNG, JPEG, PGM (P5) and PPM (P6); convert it to one of them", shown);
}

Image resize(const Image& image, int64_t height, int64_t width) {
  check(height > 0 && width > 0, "an image is resized to at least one pixel");
  const std::vector<Taps> columns = triangle_taps(image.width, width), rows = triangle_taps(image.height, height);
  Image result{image.channels, height, width, {}};
  result.pixels.resize(static_cast<size_t>(image.channels * height * width));
  // One row of the source at a time, added to the few rows of the result that it belongs to: the memory that this takes
  // depends on the result alone, however long the source is.
  std::vector<float> narrowed(static_cast<size_t>(width)), sums(static_cast<size_t>(height * width));
  uint8_t* out = result.pixels.data();
  for (int64_t channel = 0; channel < image.channels; ++channel) {
    const uint8_t* source = image.pixels.data() + channel * image.height * image.width;
    std::fill(sums.begin(), sums.end(), 0.0f);
    int64_t begin = 0;  // rows of the result before this one are complete
    for (int64_t y = 0; y < image.height; ++y, source += image.width) {
      float* cell = narrowed.data();
      for (const Taps& taps : columns) {
        const uint8_t* pixel = source + taps.first;
        float sum = 0;
        for (const float weight : taps.weights) sum += weight * static_cast<float>(*pixel++);
        *cell++ = sum;
      }
      while (begin < height && rows[static_cast<size_t>(begin)].end() <= y) ++begin;
      for (int64_t target = begin; target < height && rows[static_cast<size_t>(target)].first <= y; ++target) {
        const Taps& taps = rows[static_cast<size_t>(target)];
        const float weight = taps.weights[static_cast<size_t>(y - taps.first)];
        float* sum = sums.data() + target * width;
        for (int64_t x = 0; x < width; ++x) sum[x] += weight * narrowed[static_cast<size_t>(x)];
      }
    }
    for (const float sum : sums) *out++ = static_cast<uint8_t>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
  }
  return result;
}

Image resize_shorter(const Image& image, int64_t shorter) {
  const int64_t side = std::min(image.height, image.width);
  if (std::max(image.height, image.width) > kLongestRatio * side) {
    const int64_t height = std::min(image.height, kLongestRatio * side);
    const int64_t width = std::min(image.width, kLongestRatio * side);
    Image middle{image.channels, height, width, {}};
    middle.pixels.resize(static_cast<size_t>(image.channels * height * width));
    copy_middle(image, height, width, middle.pixels);
    return resize_shorter(middle, shorter);
  }
  if (side == shorter) return image;
  const auto scaled = [&](int64_t length) { return std::max(shorter, (length * shorter + side / 2) / side); };
  return resize(image, scaled(image.height), scaled(image.width));
}

void copy_middle(const Image& image, int64_t height, int64_t width, std::span<uint8_t> destination) {
  check(height <= image.height && width <= image.width, "the middle of an image lies in it");
  const int64_t top = (image.height - height) / 2, left = (image.width - width) / 2;
  uint8_t* out = destination.data();
  for (int64_t channel = 0; channel < image.channels; ++channel)
    for (int64_t y = 0; y < height; ++y, out += width)
      std::copy_n(image.pixels.data() + (channel * image.height + top + y) * image.width + left, width, out);
}

Image with_channels(const Image& image, int64_t channels) {
  if (image.channels == channels) return image;
  Image result{channels, image.height, image.width, {}};
  const size_t area = static_cast<size_t>(image.height * image.width);
  if (image.channels == 1 && channels == 3) {
    for (int copy = 0; copy < 3; ++copy)
      result.pixels.insert(result.pixels.end(), image.pixels.begin(), image.pixels.end());
    return result;
  }
  if (image.channels == 3 && channels == 1) {
    const uint8_t *red = image.pixels.data(), *green = red + area, *blue = green + area;
    result.pixels.resize(area);
    for (size_t at = 0; at < area; ++at)
      result.pixels[at] = static_cast<uint8_t>((299 * red[at] + 587 * green[at] + 114 * blue[at] + 500) / 1000);
    return result;
  }
  fail(ErrorKind::shape, "[image] {} channels cannot become {}; weft converts between 1 (grey) and 3 (RGB)",
       image.channels, channels);
}

Image fit(const Image& image, const Shape& sample_shape) {
  if (sample_shape.rank() != 3)
    fail(ErrorKind::shape, "[image] the model reads {}, no images (C,H,W)", to_string(sample_shape));
  return resize(with_channels(image, sample_shape[0]), sample_shape[1], sample_shape[2]);
}

}  // namespace weft::data
