#include "weft/models/model.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/base/rng.h"
#include "weft/models/entries.h"
#include "weft/models/initial_part.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

/// A weight [O,C,KH,KW] whose filter o < C gives channel o at the middle of the window.
void pass_channels_on(const Shape& shape, float* values) {
  const int64_t area = shape[2] * shape[3], middle = shape[2] / 2 * shape[3] + shape[3] / 2;
  for (int64_t filter = 0; filter < std::min(shape[0], shape[1]); ++filter) {
    float* weights = values + filter * shape[1] * area;
    std::fill_n(weights, shape[1] * area, 0.0f);
    weights[filter * area + middle] = 1;
  }
}

/// Whitening filters where the second moments of the patches are the unit matrix.
void pass_pixels_on(const Shape& shape, double epsilon, float* values) {
  const int64_t pixels = shape.elements() / shape[0], half = shape[0] / 2;
  for (int64_t filter = 0; filter < std::min(half, pixels); ++filter) {
    values[filter * pixels + filter] = static_cast<float>(1 / std::sqrt(1 + epsilon));
    values[(half + filter) * pixels + filter] = -values[filter * pixels + filter];
  }
}

// Far beyond any memory, far below where products of sizes overflow.
constexpr double kMostElements = 0x1p40;

void require_known_options(const ModelEntry& entry, const ModelOptions& options) {
  std::vector<std::string> known;
  for (const std::string& described : entry.options) known.push_back(option_name(described));
  for (const auto& [name, value] : options) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (known.empty()) fail(ErrorKind::usage, "[{}] there is no option '{}': the model has none", entry.name, name);
    fail(ErrorKind::usage, "[{}] there is no option '{}'{}", entry.name, name, suggestion(name, known));
  }
}

void require_sane_input(const std::string& model, const ModelInput& input) {
  if (input.batch < 1) fail(ErrorKind::usage, "[{}] the batch must hold at least 1 sample, got {}", model, input.batch);
  if (input.classes < 1) fail(ErrorKind::usage, "[{}] there must be at least 1 class, got {}", model, input.classes);
  double elements = static_cast<double>(input.batch) * static_cast<double>(input.classes);
  bool fits = elements <= kMostElements && !input.shape.empty();
  elements = static_cast<double>(input.batch);
  for (const int64_t size : input.shape) {
    elements *= static_cast<double>(size);
    fits = fits && size >= 1 && elements <= kMostElements;
  }
  if (fits) return;
  fail(ErrorKind::shape,
       "[{}] cannot be built for a batch of {} samples {} of {} classes: sizes must be positive and "
       "within reason",
       model, input.batch, to_string(Shape(input.shape)), input.classes);
}

}  // namespace

const std::vector<ModelEntry>& all_models() {
  static const std::vector<ModelEntry> entries{mlp_entry(),
                                               lenet5_entry(),
                                               alexnet_entry(),
                                               vgg16_entry(),
                                               resnet9_entry(),
                                               resnet20_entry(),
                                               resnet18_entry(),
                                               resnet34_entry(),
                                               resnet50_entry(),
                                               resnet50_128_entry(),
                                               resnet101_entry(),
                                               resnet152_entry(),
                                               resnest269_entry(),
                                               wide_resnet_entry(),
                                               wide_resnet50_2_entry(),
                                               densenet121_entry(),
                                               mobilenet_v2_entry(),
                                               vit_tiny_entry(),
                                               unet_small_entry(),
                                               autoencoder_entry(),
                                               lstm_classifier_entry(),
                                               seq2seq_attention_entry(),
                                               crnn_entry(),
                                               transformer_lm_entry(),
                                               airbench94_entry()};
  return entries;
}

const ModelEntry& find_model(const std::vector<ModelEntry>& models, const std::string& name) {
  std::vector<std::string> known;
  for (const ModelEntry& entry : models) {
    if (entry.name == name) return entry;
    known.push_back(entry.name);
  }
  fail(ErrorKind::usage, "there is no model '{}' (`weft models` lists them){}", name, suggestion(name, known));
}

Model build(const OpRegistry& registry, const ModelEntry& entry, const ModelInput& input, const ModelOptions& options,
            Mode mode) {
  require_known_options(entry, options);
  require_sane_input(entry.name, input);
  check(input.new_tokens == 0 || (entry.generates && mode == Mode::inference && input.new_tokens <= input.shape[0]),
        "new tokens are for a model that generates, and within its window");
  return entry.build(registry, input, options, mode);
}

Model build(const OpRegistry& registry, const std::string& name, const ModelInput& input, const ModelOptions& options,
            Mode mode) {
  return build(registry, find_model(all_models(), name), input, options, mode);
}

int64_t multiply_adds(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes()) {
    // A transposed convolution is the gradient of one.
    const std::string& op = node.op->name;
    if (op == "lstm" || op == "gru")  // their product with the hidden state
      count += graph.type(node.inputs[0]).elements() * graph.shape(node.inputs[1])[1];
    const bool counts = op == "conv2d" || op == "conv2d_backward_data" || op == "matmul" || op == "integer_conv2d" ||
                        op == "integer_matmul" || op == "dequantized_matmul" || op == "quantized_conv2d" ||
                        op == "quantized_matmul";
    if (!counts) continue;
    std::vector<TensorType> inputs, outputs;
    for (const ValueId value : node.inputs) inputs.push_back(graph.type(value));
    for (const ValueId value : node.outputs) outputs.push_back(graph.type(value));
    count += node.op->flops(inputs, outputs, node.attributes) / 2;
  }
  return count;
}

Tensor initialize(const ParameterSpec& parameter, uint64_t seed) {
  if (!parameter.start.empty()) return parameter.start.clone();
  Tensor tensor(DType::f32, parameter.shape);
  float* values = tensor.data_as<float>();
  const int64_t count = tensor.elements();
  RandomStream stream(mix(seed, hash_name(parameter.name)));
  switch (parameter.initializer.kind) {
    case Initializer::Kind::zeros:
      break;
    case Initializer::Kind::ones:
      for (int64_t i = 0; i < count; ++i) values[i] = 1;
      break;
    case Initializer::Kind::uniform:
    case Initializer::Kind::identity:
    case Initializer::Kind::normal:
      for (int64_t i = 0; i < count; ++i) values[i] = draw(stream, parameter.initializer);
      break;
    case Initializer::Kind::whitening:
      pass_pixels_on(parameter.shape, parameter.initializer.scale, values);
      break;
  }
  if (parameter.initializer.kind == Initializer::Kind::identity) pass_channels_on(parameter.shape, values);
  return tensor;
}

}  // namespace weft::models
