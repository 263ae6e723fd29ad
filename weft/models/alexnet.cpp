// AlexNet as torchvision has it: the single-column version of Krizhevsky 2014, without local response normalisation.
#include <fmt/format.h>

#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

Model build_alexnet(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const double dropout = OptionReader("alexnet", options).probability("dropout", 0.5);
  ModelBuilder m(registry, "alexnet", input, mode);
  Graph& graph = m.graph();
  const auto conv = [&](ValueId x, int index, int64_t channels, int64_t kernel, int64_t stride = 1) {
    const int64_t padding = kernel == 11 ? 2 : kernel / 2;
    x = m.conv(x, fmt::format("features.{}", index),
               {.channels = channels, .kernel = kernel, .stride = stride, .padding = {padding, padding}, .bias = true});
    return ops::relu(graph, x, fmt::format("features.{}", index + 1));
  };
  const auto pool = [&](ValueId x, int index) {
    return ops::max_pool2d(graph, x, {.kernel = {3, 3}, .stride = {2, 2}}, fmt::format("features.{}", index));
  };
  ValueId x = m.image(63);  // below, nothing is left for the last pooling
  x = pool(conv(x, 0, 64, 11, 4), 2);
  x = pool(conv(x, 3, 192, 5), 5);
  x = conv(x, 6, 384, 3);
  x = conv(x, 8, 256, 3);
  x = pool(conv(x, 10, 256, 3), 12);
  x = ops::reshape(graph, ops::adaptive_avg_pool2d(graph, x, {6, 6}, "avgpool"), {input.batch, -1}, "flat");
  x = m.dropout(x, dropout, "classifier.0");
  x = ops::relu(graph, m.linear(x, "classifier.1", {.width = 4096}), "classifier.2");
  x = m.dropout(x, dropout, "classifier.3");
  x = ops::relu(graph, m.linear(x, "classifier.4", {.width = 4096}), "classifier.5");
  return m.finish(m.linear(x, "classifier.6", {.width = input.classes}));
}

}  // namespace

ModelEntry alexnet_entry() {
  return {"alexnet",
          "five convolutions and three fully connected layers, for photos",
          {"dropout=0.5: before each of the first two fully connected layers"},
          {1, {3, 224, 224}, 1000},
          build_alexnet};
}

}  // namespace weft::models
