// U-Net (Ronneberger et al. 2015), narrow, with batch norm and padded convolutions: a class for every pixel. Named as
// in the usual PyTorch version.
#include <fmt/format.h>

#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

/// Twice convolution 3x3, batch norm, relu.
ValueId double_conv(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels) {
  for (const int index : {0, 3}) {
    x = m.conv(x, fmt::format("{}.double_conv.{}", name, index), {.channels = channels, .padding = {1, 1}});
    x = m.batch_norm(x, fmt::format("{}.double_conv.{}", name, index + 1));
    x = ops::relu(m.graph(), x, fmt::format("{}.double_conv.{}", name, index + 2));
  }
  return x;
}

ValueId down(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels) {
  x = ops::max_pool2d(m.graph(), x, {}, name + ".maxpool_conv.0");
  return double_conv(m, x, name + ".maxpool_conv.1", channels);
}

/// Zeros around an image that lost its last row or column to a pooling.
ValueId pad_to(ModelBuilder& m, ValueId x, const Shape& wanted, const std::string& name) {
  const int64_t rows = wanted[2] - m.shape(x)[2], columns = wanted[3] - m.shape(x)[3];
  if (rows == 0 && columns == 0) return x;
  return ops::pad(m.graph(), x, {0, 0, rows / 2, columns / 2}, {0, 0, rows - rows / 2, columns - columns / 2}, 0, name);
}

/// Doubles the sides and joins what was there on the way down.
ValueId up(ModelBuilder& m, ValueId x, ValueId skip, const std::string& name) {
  const int64_t channels = m.shape(skip)[1];
  x = m.conv_transpose(x, name + ".up", {.channels = channels, .kernel = 2, .stride = 2, .bias = true});
  x = ops::concat(m.graph(), {skip, pad_to(m, x, m.shape(skip), name + ".padded")}, 1, name + ".joined");
  return double_conv(m, x, name + ".conv", channels);
}

Model build_unet_small(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const OptionReader reader("unet_small", options);
  const int64_t width = reader.integer("width", 16, 1, 4096);
  const int64_t depth = reader.integer("depth", 4, 1, 8);
  ModelBuilder m(registry, "unet_small", input, mode);
  const ValueId image = m.image_of_labelled_pixels(int64_t{1} << depth);
  std::vector<ValueId> skips{double_conv(m, image, "inc", width)};
  for (int64_t level = 1; level <= depth; ++level)
    skips.push_back(down(m, skips.back(), fmt::format("down{}", level), width << level));
  ValueId x = skips.back();
  for (int64_t level = 1; level <= depth; ++level)
    x = up(m, x, skips[static_cast<size_t>(depth - level)], fmt::format("up{}", level));
  x = m.conv(x, "outc.conv", {.channels = input.classes, .kernel = 1, .bias = true});
  x = ops::transpose(m.graph(), x, {0, 2, 3, 1}, "pixels");
  return m.finish(ops::reshape(m.graph(), x, {-1, input.classes}, "logits"));
}

}  // namespace

ModelEntry unet_small_entry() {
  return {"unet_small",
          "U-Net for segmentation: a class for every pixel",
          {"width=16: channels of the first level; each level has twice those before",
           "depth=4: times the image is halved"},
          {1, {3, 128, 128}, 2},
          build_unet_small};
}

}  // namespace weft::models
