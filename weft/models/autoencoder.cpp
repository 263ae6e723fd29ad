// A convolutional autoencoder (Hinton and Salakhutdinov 2006, with convolutions): it learns to give its input back
// through a narrow code. The target is the input itself, the loss the mean squared error.
#include <fmt/format.h>

#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

Model build_autoencoder(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const OptionReader reader("autoencoder", options);
  const int64_t code = reader.integer("code", 64, 1, 1 << 20);
  const std::vector<int64_t> widths = reader.integers("widths", {32, 64, 128}, 1, 4096);
  ModelBuilder m(registry, "autoencoder", input, mode);
  Graph& graph = m.graph();
  const ValueId image = m.image(1);
  ValueId x = image;
  std::vector<Shape> shapes;  // on the way down, for the way up
  for (size_t level = 0; level < widths.size(); ++level) {
    shapes.push_back(m.shape(x));
    x = m.conv(x, fmt::format("encoder.{}", 2 * level),
               {.channels = widths[level], .stride = 2, .padding = {1, 1}, .bias = true});
    x = ops::relu(graph, x, fmt::format("encoder.{}", 2 * level + 1));
  }
  const Shape deepest = m.shape(x);
  x = ops::reshape(graph, x, {input.batch, -1}, "encoder.flat");
  const int64_t features = m.shape(x)[1];
  x = m.linear(x, "code", {.width = code});
  x = ops::relu(graph, m.linear(x, "expand", {.width = features}), "expand.relu");
  x = ops::reshape(graph, x, deepest.dims(), "decoder.image");
  for (size_t level = 0; level < widths.size(); ++level) {
    const Shape& wanted = shapes[widths.size() - 1 - level];
    x = m.conv_transpose(x, fmt::format("decoder.{}", 2 * level),
                         {.channels = wanted[1],
                          .stride = 2,
                          .padding = {1, 1},
                          .output_padding = {(wanted[2] + 1) % 2, (wanted[3] + 1) % 2},
                          .bias = true});
    if (level + 1 < widths.size()) x = ops::relu(graph, x, fmt::format("decoder.{}", 2 * level + 1));
  }
  m.aim_at(ops::reshape(graph, image, {input.batch, -1}, "target"));
  return m.finish(ops::reshape(graph, x, {input.batch, -1}, "reconstruction"));
}

}  // namespace

ModelEntry autoencoder_entry() {
  return {
      "autoencoder",
      "convolutional autoencoder: gives its input back through a narrow code",
      {"code=64: numbers that an image is squeezed into", "widths=32,64,128: channels, each level at half the size"},
      {1, {1, 28, 28}, 10},
      build_autoencoder};
}

}  // namespace weft::models
