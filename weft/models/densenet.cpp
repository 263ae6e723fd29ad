// DenseNet-BC (Huang et al. 2017) as torchvision has it: each layer reads the features of all layers before it.
#include <fmt/format.h>

#include <algorithm>

#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

ValueId dense_norm_relu(ModelBuilder& m, ValueId x, const std::string& name, const std::string& number = "") {
  return ops::relu(m.graph(), m.batch_norm(x, name + ".norm" + number), name + ".relu" + number);
}

ValueId conv(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels, int64_t kernel,
             int64_t stride = 1) {
  return m.conv(x, name,
                {.channels = channels,
                 .kernel = kernel,
                 .stride = stride,
                 .padding = {kernel / 2, kernel / 2},
                 .start = Start::fan_in_normal});
}

/// x with `growth` more channels.
ValueId dense_layer(ModelBuilder& m, ValueId x, const std::string& name, int64_t growth) {
  ValueId fresh = conv(m, dense_norm_relu(m, x, name, "1"), name + ".conv1", 4 * growth, 1);
  fresh = conv(m, dense_norm_relu(m, fresh, name, "2"), name + ".conv2", growth, 3);
  return ops::concat(m.graph(), {x, fresh}, 1, name + ".features");
}

/// Half the channels, half the sides.
ValueId transition(ModelBuilder& m, ValueId x, const std::string& name) {
  const int64_t channels = m.shape(x)[1] / 2;
  return ops::avg_pool2d(m.graph(), conv(m, dense_norm_relu(m, x, name), name + ".conv", channels, 1), {},
                         name + ".pool");
}

Model build_densenet121(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const OptionReader reader("densenet121", options);
  const int64_t growth = reader.integer("growth", 32, 1, 4096);
  const std::vector<int64_t> blocks = reader.integers("blocks", {6, 12, 24, 16}, 1, 1000);
  ModelBuilder m(registry, "densenet121", input, mode);
  const bool small =
      reader.choice("stem", m.has_small_images() ? "small" : "imagenet", {"imagenet", "small"}) == "small";
  // Every transition halves the image, and before them the larger stem twice, the first time with a window of 7.
  const size_t halvings = std::min<size_t>(blocks.size() - 1, 20);
  ValueId x = m.image(small ? int64_t{1} << halvings : (int64_t{4} << halvings) - 3);
  x = dense_norm_relu(
      m, small ? conv(m, x, "features.conv0", 2 * growth, 3) : conv(m, x, "features.conv0", 2 * growth, 7, 2),
      "features", "0");
  if (!small) x = ops::max_pool2d(m.graph(), x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, "pool0");
  for (size_t block = 1; block <= blocks.size(); ++block) {
    for (int64_t layer = 1; layer <= blocks[block - 1]; ++layer)
      x = dense_layer(m, x, fmt::format("features.denseblock{}.denselayer{}", block, layer), growth);
    if (block < blocks.size()) x = transition(m, x, fmt::format("features.transition{}", block));
  }
  x = ops::global_avg_pool2d(m.graph(), dense_norm_relu(m, x, "features", "5"), "avgpool");
  return m.finish(m.linear(x, "classifier", {.width = input.classes, .start = Start::fan_in_uniform_weight}));
}

}  // namespace

ModelEntry densenet121_entry() {
  return {"densenet121",
          "densely connected network of 121 layers",
          {"growth=32: channels that each layer adds", "blocks=6,12,24,16: layers per block",
           "stem=imagenet|small: 7x7 with stride 2 and pooling, or 3x3; by default small below 64 pixels"},
          {1, {3, 224, 224}, 1000},
          build_densenet121};
}

}  // namespace weft::models
