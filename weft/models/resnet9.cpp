// The residual network for small images of David Page's DAWNBench entry (2018), with a choice of width (his: 64).
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

/// Convolution 3x3, batch norm, relu.
ValueId unit(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels) {
  const ValueId convolved =
      m.conv(x, name + ".conv", {.channels = channels, .kernel = 3, .padding = {1, 1}, .start = Start::fan_out_normal});
  return ops::relu(m.graph(), m.batch_norm(convolved, name + ".bn"), name + ".relu");
}

/// A unit that halves the image's sides.
ValueId stage(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels) {
  return ops::max_pool2d(m.graph(), unit(m, x, name, channels), {}, name + ".pool");
}

/// Two units whose result is added to their input.
ValueId residual(ModelBuilder& m, ValueId x, const std::string& name) {
  const int64_t channels = m.shape(x)[1];
  const ValueId path = unit(m, unit(m, x, name + ".residual.0", channels), name + ".residual.1", channels);
  return ops::add(m.graph(), path, x, name + ".residual");
}

Model build_resnet9(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const int64_t width = OptionReader("resnet9", options).integer("width", 16, 1, 4096);
  ModelBuilder m(registry, "resnet9", input, mode);
  ValueId x = unit(m, m.image(8), "prep", width);
  x = residual(m, stage(m, x, "layer1", 2 * width), "layer1");
  x = stage(m, x, "layer2", 4 * width);
  x = residual(m, stage(m, x, "layer3", 8 * width), "layer3");
  x = ops::global_max_pool2d(m.graph(), x, "pool");
  return m.finish(m.linear(x, "fc", {.width = input.classes}));
}

}  // namespace

ModelEntry resnet9_entry() {
  return {"resnet9",
          "eight convolutions with two residual connections, for small images",
          {"width=16: channels of the first layer; the others have 2, 4 and 8 times as many"},
          {1, {1, 28, 28}, 10},
          build_resnet9};
}

}  // namespace weft::models
