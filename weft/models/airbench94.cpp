// The network of airbench94 (Jordan 2024, "94% on CIFAR-10 in 3.29 seconds on a single GPU", section 3), after that of
// Page 2018: a convolution that whitens patches of 2x2 pixels, then three groups of two 3x3 convolutions, whose norms
// only shift.
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

constexpr BatchNormLayer kNorm{.momentum = 0.4, .epsilon = 1e-12, .scale = false};

ValueId conv(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels) {
  return m.conv(x, name, {.channels = channels, .kernel = 3, .padding = {1, 1}, .start = Start::identity});
}

ValueId norm_and_gelu(ModelBuilder& m, ValueId x, const std::string& group, const std::string& number) {
  return ops::gelu(m.graph(), m.batch_norm(x, group + ".norm" + number, kNorm), false, group + ".gelu" + number);
}

/// Halves the image's sides.
ValueId group(ModelBuilder& m, ValueId x, const std::string& name, int64_t channels) {
  const ValueId pooled = ops::max_pool2d(m.graph(), conv(m, x, name + ".conv1", channels), {}, name + ".pool");
  x = norm_and_gelu(m, pooled, name, "1");
  return norm_and_gelu(m, conv(m, x, name + ".conv2", channels), name, "2");
}

Model build_airbench94(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const int64_t width = OptionReader("airbench94", options).integer("width", 64, 1, 4096);
  ModelBuilder m(registry, "airbench94", input, mode);
  ValueId x = m.image(9);
  // Every eigenvector of a patch with either sign.
  const int64_t filters = 2 * m.shape(x)[1] * 2 * 2;
  x = m.conv(x, "whiten", {.channels = filters, .kernel = 2, .bias = true, .start = Start::whitening});
  x = ops::gelu(m.graph(), x, false, "whiten.gelu");
  x = group(m, x, "group1", width);
  x = group(m, x, "group2", 4 * width);
  x = group(m, x, "group3", 4 * width);
  x = ops::global_max_pool2d(m.graph(), x, "pool");  // of 3x3 where images have 28 to 32 pixels
  const ValueId logits = m.linear(x, "head", {.width = input.classes, .bias = false});
  return m.finish(ops::multiply_scalar(m.graph(), logits, 1.0 / 9, "head.scaled"));
}

}  // namespace

ModelEntry airbench94_entry() {
  return {"airbench94",
          "a whitening convolution and six more, for CIFAR-10",
          {"width=64: channels of the first group; the other two have 4 times as many"},
          {1, {3, 32, 32}, 10},
          build_airbench94};
}

}  // namespace weft::models
