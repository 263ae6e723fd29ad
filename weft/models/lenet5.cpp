// LeNet-5 (LeCun et al. 1998) with relu and max pooling, as it is mostly taught today.
#include "weft/models/builder.h"
#include "weft/models/entries.h"

namespace weft::models {
namespace {

Model build_lenet5(const OpRegistry& registry, const ModelInput& input, const ModelOptions&, Mode mode) {
  ModelBuilder m(registry, "lenet5", input, mode);
  Graph& graph = m.graph();
  ValueId x = m.image(12);
  // The network was drawn for 32 x 32 pixels; the usual digits have 28 x 28.
  const Shape image = m.shape(x);
  const ops::Pair padding{image[2] < 32 ? 2 : 0, image[3] < 32 ? 2 : 0};
  x = m.conv(x, "conv1", {.channels = 6, .kernel = 5, .padding = padding, .bias = true});
  x = ops::max_pool2d(graph, ops::relu(graph, x, "relu1"), {}, "pool1");
  x = m.conv(x, "conv2", {.channels = 16, .kernel = 5, .bias = true});
  x = ops::max_pool2d(graph, ops::relu(graph, x, "relu2"), {}, "pool2");
  x = ops::reshape(graph, x, {input.batch, -1}, "flat");
  x = ops::relu(graph, m.linear(x, "fc1", {.width = 120}), "relu3");
  x = ops::relu(graph, m.linear(x, "fc2", {.width = 84}), "relu4");
  return m.finish(m.linear(x, "fc3", {.width = input.classes}));
}

}  // namespace

ModelEntry lenet5_entry() {
  return {"lenet5",
          "two convolutions and three fully connected layers, for digits",
          {},
          {1, {1, 28, 28}, 10},
          build_lenet5};
}

}  // namespace weft::models
