// MobileNetV2 (Sandler et al. 2018) as torchvision has it: inverted residuals of depthwise convolutions, relu6.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

struct Unit {
  int64_t channels, kernel = 1, stride = 1, groups = 1;
};

ValueId conv_norm(ModelBuilder& m, ValueId x, const std::string& conv, const std::string& norm, const Unit& unit) {
  const int64_t padding = unit.kernel / 2;
  x = m.conv(x, conv,
             {.channels = unit.channels,
              .kernel = unit.kernel,
              .stride = unit.stride,
              .padding = {padding, padding},
              .groups = unit.groups,
              .start = Start::fan_out_normal});
  return m.batch_norm(x, norm);
}

ValueId conv_norm_relu6(ModelBuilder& m, ValueId x, const std::string& name, const Unit& unit) {
  return ops::clip(m.graph(), conv_norm(m, x, name + ".0", name + ".1", unit), 0, 6, name + ".2");
}

/// Expands the channels, filters each alone, and projects them down again, without activation.
ValueId inverted_residual(ModelBuilder& m, ValueId x, const std::string& name, int64_t expansion, int64_t channels,
                          int64_t stride) {
  const int64_t inputs = m.shape(x)[1], wide = inputs * expansion;
  int index = 0;
  ValueId path = x;
  if (expansion != 1) path = conv_norm_relu6(m, path, fmt::format("{}.conv.{}", name, index++), {.channels = wide});
  path = conv_norm_relu6(m, path, fmt::format("{}.conv.{}", name, index++),
                         {.channels = wide, .kernel = 3, .stride = stride, .groups = wide});
  path = conv_norm(m, path, fmt::format("{}.conv.{}", name, index), fmt::format("{}.conv.{}", name, index + 1),
                   {.channels = channels});
  return stride == 1 && inputs == channels ? ops::add(m.graph(), path, x, name + ".sum") : path;
}

/// The nearest multiple of 8 that is no more than a tenth smaller.
int64_t scaled(int64_t channels, double width) {
  const double wanted = static_cast<double>(channels) * width;
  const int64_t rounded = std::max<int64_t>(8, static_cast<int64_t>(wanted + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * wanted ? rounded + 8 : rounded;
}

struct BlockGroup {
  int64_t expansion, channels, blocks, stride;
};
constexpr std::array<BlockGroup, 7> kBlockGroups{
    {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}};

Model build_mobilenet_v2(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const OptionReader reader("mobilenet_v2", options);
  const double width = reader.number("width", 1, 0.05, 8);
  const double dropout = reader.probability("dropout", 0.2);
  ModelBuilder m(registry, "mobilenet_v2", input, mode);
  ValueId x = m.image(1);
  const bool small =
      reader.choice("stem", m.has_small_images() ? "small" : "imagenet", {"imagenet", "small"}) == "small";
  x = conv_norm_relu6(m, x, "features.0", {.channels = scaled(32, width), .kernel = 3, .stride = small ? 1 : 2});
  int index = 1;
  for (const BlockGroup& stage : kBlockGroups) {
    const bool keep = small && stage.channels == 24;
    for (int64_t block = 0; block < stage.blocks; ++block) {
      const int64_t stride = block == 0 && !keep ? stage.stride : 1;
      x = inverted_residual(m, x, fmt::format("features.{}", index++), stage.expansion, scaled(stage.channels, width),
                            stride);
    }
  }
  const int64_t last = scaled(1280, std::max(1.0, width));
  x = conv_norm_relu6(m, x, fmt::format("features.{}", index), {.channels = last});
  x = m.dropout(ops::global_avg_pool2d(m.graph(), x, "avgpool"), dropout, "classifier.0");
  return m.finish(m.linear(x, "classifier.1", {.width = input.classes, .start = Start::tiny_normal}));
}

}  // namespace

ModelEntry mobilenet_v2_entry() {
  return {"mobilenet_v2",
          "inverted residuals of depthwise convolutions, for small devices",
          {"width=1: times the channels", "dropout=0.2: before the classifier",
           "stem=imagenet|small: small halves the image three times instead of five; by default below 64 pixels"},
          {1, {3, 224, 224}, 1000},
          build_mobilenet_v2};
}

}  // namespace weft::models
