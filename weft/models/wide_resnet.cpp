// Wide residual networks for small images (Zagoruyko and Komodakis 2016): pre-activation blocks, three groups. Named as
// in the usual PyTorch version.
#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

ValueId norm_relu(ModelBuilder& m, ValueId x, const std::string& norm, const std::string& relu) {
  return ops::relu(m.graph(), m.batch_norm(x, norm), relu);
}

ValueId conv3x3(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels, int64_t stride = 1) {
  return m.conv(x, name, {.channels = channels, .stride = stride, .padding = {1, 1}, .start = Start::fan_out_normal});
}

ValueId block(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels, int64_t stride, double dropout) {
  const ValueId active = norm_relu(m, x, name + ".bn1", name + ".relu1");
  ValueId path = conv3x3(m, active, name + ".conv1", channels, stride);
  path = m.dropout(norm_relu(m, path, name + ".bn2", name + ".relu2"), dropout, name + ".dropout");
  path = conv3x3(m, path, name + ".conv2", channels);
  const bool same = m.shape(x)[1] == channels && stride == 1;
  const ValueId shortcut =
      same ? x
           : m.conv(active, name + ".convShortcut",
                    {.channels = channels, .kernel = 1, .stride = stride, .start = Start::fan_out_normal});
  return ops::add(m.graph(), path, shortcut, name + ".sum");
}

Model build_wide_resnet(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const OptionReader reader("wide_resnet", options);
  const int64_t depth = reader.integer("depth", 28, 10, 1000);
  const int64_t width = reader.integer("width", 10, 1, 256);
  const double dropout = reader.probability("dropout", 0);
  if ((depth - 4) % 6 != 0) {
    fail(ErrorKind::usage, "[wide_resnet] a depth of {} is not 6 n + 4; choose {} or {}", depth,
         (depth - 4) / 6 * 6 + 4, (depth - 4) / 6 * 6 + 10);
  }
  ModelBuilder m(registry, "wide_resnet", input, mode);
  ValueId x = conv3x3(m, m.image(8), "conv1", 16);
  for (int group = 1; group <= 3; ++group) {
    for (int64_t index = 0; index < (depth - 4) / 6; ++index) {
      const int64_t stride = group > 1 && index == 0 ? 2 : 1;
      x = block(m, x, fmt::format("block{}.layer.{}", group, index), (int64_t{8} << group) * width, stride, dropout);
    }
  }
  x = ops::global_avg_pool2d(m.graph(), norm_relu(m, x, "bn1", "relu"), "avgpool");
  return m.finish(m.linear(x, "fc", {.width = input.classes, .start = Start::fan_in_uniform_weight}));
}

}  // namespace

ModelEntry wide_resnet_entry() {
  return {"wide_resnet",
          "WRN-28-10: wide residual network for small images, pre-activation blocks",
          {"depth=28: layers, 6 n + 4", "width=10: times the channels of a plain residual network, 16 to 64",
           "dropout=0: between the two convolutions of a block"},
          {1, {3, 32, 32}, 10},
          build_wide_resnet};
}

}  // namespace weft::models
