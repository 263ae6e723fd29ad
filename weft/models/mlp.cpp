// Multi-layer perceptron: fully connected layers with relu between them.
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

Model build_mlp(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const std::vector<int64_t> hidden = OptionReader("mlp", options).integers("hidden", {512, 256}, 1, 1 << 20);
  ModelBuilder m(registry, "mlp", input, mode);
  const ValueId samples = m.samples();
  ValueId x = ops::reshape(m.graph(), samples, {input.batch, -1}, "flat");
  int layer = 0;
  for (const int64_t width : hidden) {
    const std::string number = std::to_string(++layer);
    x = ops::relu(m.graph(), m.linear(x, "fc" + number, {.width = width}), "relu" + number);
  }
  return m.finish(m.linear(x, "fc" + std::to_string(layer + 1), {.width = input.classes}));
}

}  // namespace

ModelEntry mlp_entry() {
  return {"mlp",
          "fully connected layers with relu between them",
          {"hidden=512,256: widths of the hidden layers"},
          {1, {1, 28, 28}, 10},
          build_mlp};
}

}  // namespace weft::models
