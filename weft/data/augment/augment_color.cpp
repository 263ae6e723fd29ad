#include "weft/data/augment/augment_color.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft::data {

namespace {

float grey(float red, float green, float blue) { return 0.2989f * red + 0.587f * green + 0.114f * blue; }
float clamped(float value) { return std::clamp(value, 0.0f, 1.0f); }

/// HSV and back (Smith 1978); saturation and value stay.
void turn_hue(float& red, float& green, float& blue, float turn) {
  const float largest = std::max({red, green, blue}), smallest = std::min({red, green, blue});
  const float range = largest - smallest;
  if (range <= 0) return;  // grey has no hue
  float hue = largest == red     ? (green - blue) / range
              : largest == green ? 2 + (blue - red) / range
                                 : 4 + (red - green) / range;
  hue = hue / 6 + turn;
  hue = 6 * (hue - std::floor(hue));
  // Each channel is a trapezoid over the hue: f(n) = value - range * clamp(min(k, 4 - k), 0, 1), k = (n + hue) mod 6.
  const auto channel = [&](float n) {
    const float k = std::fmod(n + hue, 6.0f);
    return largest - range * clamped(std::min(k, 4 - k));
  };
  red = channel(5);
  green = channel(3);
  blue = channel(1);
}

}  // namespace

void change_color(std::span<float> image, const Shape& shape, const ColorChange& change) {
  const auto area = static_cast<size_t>(shape[1] * shape[2]);
  const bool colour = shape[0] == 3;
  float *red = image.data(), *green = red + area, *blue = green + area;
  if (change.brightness != 1)
    for (float& value : image) value = clamped(value * change.brightness);
  if (change.contrast != 1) {
    double sum = 0;
    for (size_t at = 0; at < area; ++at)
      sum += static_cast<double>(colour ? grey(red[at], green[at], blue[at]) : red[at]);
    const float mean = static_cast<float>(sum / static_cast<double>(area)) * (1 - change.contrast);
    for (float& value : image) value = clamped(value * change.contrast + mean);
  }
  if (!colour) return;
  if (change.saturation != 1)
    for (size_t at = 0; at < area; ++at) {
      const float base = grey(red[at], green[at], blue[at]) * (1 - change.saturation);
      for (float* channel : {red, green, blue}) channel[at] = clamped(channel[at] * change.saturation + base);
    }
  if (change.hue != 0)
    for (size_t at = 0; at < area; ++at) turn_hue(red[at], green[at], blue[at], change.hue);
}

ColorChange draw_color(const ColorRanges& ranges, RandomStream& random) {
  const auto either_way = [&](double most) { return most * (2 * static_cast<double>(random.uniform()) - 1); };
  ColorChange change;
  change.brightness = static_cast<float>(1 + either_way(ranges.brightness));
  change.contrast = static_cast<float>(1 + either_way(ranges.contrast));
  change.saturation = static_cast<float>(1 + either_way(ranges.saturation));
  change.hue = static_cast<float>(either_way(ranges.hue));
  return change;
}

PixelChange random_color(const ColorRanges& ranges) {
  const auto apply = [ranges](const PixelCall& call) {
    change_color(call.image, call.shape, draw_color(ranges, call.random));
  };
  const auto check = [ranges](const Shape& sample) {
    if ((ranges.saturation != 0 || ranges.hue != 0) && sample[0] != 3)
      fail(ErrorKind::usage,
           "[augment] saturation and hue are of colours, samples {} have {} channel{}; leave them away",
           to_string(sample), sample[0], sample[0] == 1 ? "" : "s");
  };
  return {.name = "color", .apply = apply, .check = check};
}

}  // namespace weft::data
