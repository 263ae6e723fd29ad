// VGG-16 (Simonyan and Zisserman 2015, configuration D) as torchvision has it, with or without batch norm.
#include <fmt/format.h>

#include <array>

#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

struct VggStage {
  int convolutions;
  int64_t channels;
};
constexpr std::array<VggStage, 5> kVggStages{{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}};

/// Stages of 3x3 convolutions, each followed by pooling; numbered as the layers of one nn.Sequential.
ValueId features(ModelBuilder& m, ValueId x, bool batch_norm) {
  int index = 0;
  const auto next = [&] { return fmt::format("features.{}", index++); };
  for (const VggStage& stage : kVggStages) {
    for (int convolution = 0; convolution < stage.convolutions; ++convolution) {
      x = m.conv(x, next(),
                 {.channels = stage.channels, .padding = {1, 1}, .bias = true, .start = Start::fan_out_normal});
      if (batch_norm) x = m.batch_norm(x, next());
      x = ops::relu(m.graph(), x, next());
    }
    x = ops::max_pool2d(m.graph(), x, {}, next());
  }
  return x;
}

Model build_vgg16(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  ModelBuilder m(registry, "vgg16", input, mode);
  Graph& graph = m.graph();
  const ValueId image = m.image(32);
  const OptionReader reader("vgg16", options);
  const bool batch_norm = reader.choice("norm", "none", {"none", "batch"}) == "batch";
  const double dropout = reader.probability("dropout", 0.5);
  const std::string head = reader.choice("head", m.has_small_images() ? "small" : "imagenet", {"imagenet", "small"});
  ValueId x = features(m, image, batch_norm);
  if (head == "small") {
    x = ops::global_avg_pool2d(graph, x, "avgpool");
    return m.finish(m.linear(x, "classifier", {.width = input.classes, .start = Start::tiny_normal}));
  }
  x = ops::reshape(graph, ops::adaptive_avg_pool2d(graph, x, {7, 7}, "avgpool"), {input.batch, -1}, "flat");
  x = ops::relu(graph, m.linear(x, "classifier.0", {.width = 4096, .start = Start::tiny_normal}), "classifier.1");
  x = m.dropout(x, dropout, "classifier.2");
  x = ops::relu(graph, m.linear(x, "classifier.3", {.width = 4096, .start = Start::tiny_normal}), "classifier.4");
  x = m.dropout(x, dropout, "classifier.5");
  return m.finish(m.linear(x, "classifier.6", {.width = input.classes, .start = Start::tiny_normal}));
}

}  // namespace

ModelEntry vgg16_entry() {
  return {"vgg16",
          "thirteen 3x3 convolutions and three fully connected layers",
          {"norm=none|batch: batch norm after each convolution (torchvision's vgg16_bn)",
           "head=imagenet|small: three fully connected layers, or one; by default small below 64 pixels",
           "dropout=0.5: after each of the first two fully connected layers"},
          {1, {3, 224, 224}, 1000},
          build_vgg16};
}

}  // namespace weft::models
