// Residual networks for small images (He et al. 2016, section 4.2): three groups of blocks, and shortcuts without
// weights, which skip pixels and fill up channels with zeros (their option A). Named as in the usual PyTorch version.
#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

ValueId conv_norm(ModelBuilder& m, ValueId x, const std::string& name, int number, int64_t channels, int64_t stride) {
  const std::string suffix = std::to_string(number);
  x = m.conv(x, name + "conv" + suffix,
             {.channels = channels, .stride = stride, .padding = {1, 1}, .start = Start::fan_in_normal});
  return m.batch_norm(x, name + "bn" + suffix);
}

/// Every second pixel, with as many channels of zeros before as behind.
ValueId padded_shortcut(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels, int64_t stride) {
  Graph& graph = m.graph();
  const Shape shape = m.shape(x);
  if (stride > 1)
    x = ops::strided_slice(graph, x, {0, 0, 0, 0}, shape.dims(), {1, 1, stride, stride}, name + ".skipped");
  const int64_t missing = channels - shape[1];
  if (missing == 0) return x;
  return ops::pad(graph, x, {0, missing / 2, 0, 0}, {0, missing - missing / 2, 0, 0}, 0, name + ".shortcut");
}

ValueId block(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels, int64_t stride) {
  ValueId path = ops::relu(m.graph(), conv_norm(m, x, name + ".", 1, channels, stride), name + ".relu1");
  path = conv_norm(m, path, name + ".", 2, channels, 1);
  const ValueId sum = ops::add(m.graph(), path, padded_shortcut(m, x, name, channels, stride), name + ".sum");
  return ops::relu(m.graph(), sum, name + ".relu2");
}

Model build_resnet20(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const OptionReader reader("resnet20", options);
  const int64_t depth = reader.integer("depth", 20, 8, 1202), width = reader.integer("width", 16, 1, 1024);
  if ((depth - 2) % 6 != 0)
    fail(ErrorKind::usage, "[resnet20] a depth of {} is not 6 n + 2; choose {} or {}", depth, (depth - 2) / 6 * 6 + 2,
         (depth - 2) / 6 * 6 + 8);
  ModelBuilder m(registry, "resnet20", input, mode);
  ValueId x = ops::relu(m.graph(), conv_norm(m, m.image(8), "", 1, width, 1), "relu1");
  for (int group = 1; group <= 3; ++group)
    for (int64_t index = 0; index < (depth - 2) / 6; ++index)
      x = block(m, x, fmt::format("layer{}.{}", group, index), width << (group - 1), group > 1 && index == 0 ? 2 : 1);
  x = ops::global_avg_pool2d(m.graph(), x, "avgpool");
  return m.finish(m.linear(x, "linear", {.width = input.classes}));
}

}  // namespace

ModelEntry resnet20_entry() {
  return {"resnet20",
          "residual network for small images whose shortcuts have no weights: 20 layers, 0.27 million parameters",
          {"depth=20: layers, 6 n + 2, such as 32, 56, 110", "width=16: channels of the first group"},
          {1, {3, 32, 32}, 10},
          build_resnet20};
}

}  // namespace weft::models
