// An op, a model and a kind of data that weft does not come with.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/models/builder.h"
#include "weft/ops/define.h"

namespace weft {

inline OpDef sine_op() {
  OpDef op;
  op.name = "sine";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.infer = [](const InferContext& context) { return std::vector<TensorType>{context.inputs[0]}; };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const ValueId ahead = ops::add_scalar(context.graph, context.inputs[0], std::acos(-1.0) / 2);
    return {ops::multiply(context.graph, context.output_gradients[0], context.graph.add("sine", {ahead}))};
  };
  return op;
}

inline KernelBody prepare_sine(const NodeSignature& node, const KernelOptions&) {
  return [count = node.outputs[0].elements()](const KernelArguments& call) {
    for (int64_t i = 0; i < count; ++i) call.output(0)[i] = std::sin(call.input(0)[i]);
  };
}

inline models::Model build_wave(const OpRegistry& registry, const models::ModelInput& input,
                                const models::ModelOptions& options, models::Mode mode) {
  const auto width = options.contains("width") ? std::stoll(options.at("width")) : 16;
  models::ModelBuilder m(registry, "wave", input, mode);
  const ValueId hidden = m.linear(m.samples(), "in", {.width = width});
  return m.finish(m.linear(m.graph().add("sine", {hidden}), "out", {.width = input.classes}));
}

/// x in [-3, 3) and sin(2 x).
class Wave : public data::Dataset {
 public:
  explicit Wave(int64_t samples)
      : Dataset({.name = "wave",
                 .sample_shape = {1},
                 .classes = 1,
                 .task = "regression",
                 .sample_dtype = DType::f32,
                 .target_dtype = DType::f32,
                 .target_shape = {1}}),
        samples_(samples) {}
  int64_t size() const override { return samples_; }
  void get(const data::SampleKey& key, std::span<uint8_t> sample) const override {
    data::view_as<float>(sample)[0] = x_of(key.index);
  }
  void get_target(const data::SampleKey& key, std::span<uint8_t> target) const override {
    data::view_as<float>(target)[0] = std::sin(2 * x_of(key.index));
  }

 private:
  float x_of(int64_t index) const { return 6 * static_cast<float>(index) / static_cast<float>(samples_) - 3; }
  int64_t samples_;
};

inline data::DatasetKind wave_kind() {
  return {.name = "wave",
          .form = "wave:[?samples=N]",
          .summary = "a sine",
          .open = [](const data::DataSpec& spec, data::Split split, const std::string&) {
            const int64_t samples = data::SpecOptions(spec, {"samples"}).integer("samples", 512, 1, 1 << 20);
            return std::make_unique<Wave>(split == data::Split::train ? samples : samples / 4);
          }};
}

/// weft's library with all three.
inline Library own_library() {
  Library library = standard_library();
  library.add_op(sine_op(), prepare_sine);
  library.add_model({.name = "wave", .summary = "one layer", .options = {"width=16: hidden"}, .build = build_wave});
  library.add_data(wave_kind());
  return library;
}

}  // namespace weft
