#include "weft/models/builder.h"

#include <cmath>

#include "weft/base/error.h"

namespace weft::models {
namespace {

constexpr double kWhiteningEpsilon = 5e-4;  // as Page 2018 and Jordan 2024 have it

Initializer weight_start(Start start, int64_t fan_in, int64_t fan_out) {
  const auto normal = [](double deviation) { return Initializer{Initializer::Kind::normal, deviation}; };
  switch (start) {
    case Start::fan_in_uniform:
    case Start::fan_in_uniform_weight:
      return {Initializer::Kind::uniform, 1 / std::sqrt(static_cast<double>(fan_in))};
    case Start::fan_in_normal:
      return normal(std::sqrt(2 / static_cast<double>(fan_in)));
    case Start::fan_out_normal:
      return normal(std::sqrt(2 / static_cast<double>(fan_out)));
    case Start::small_normal:
      return normal(0.02);
    case Start::tiny_normal:
      return normal(0.01);
    case Start::identity:
      return {Initializer::Kind::identity, 1 / std::sqrt(static_cast<double>(fan_in))};
    case Start::whitening:
      return {Initializer::Kind::whitening, kWhiteningEpsilon};
  }
  return {};
}

Initializer bias_start(Start start, int64_t fan_in) {
  if (start != Start::fan_in_uniform) return {};
  return {Initializer::Kind::uniform, 1 / std::sqrt(static_cast<double>(fan_in))};
}

}  // namespace

ModelBuilder::ModelBuilder(const OpRegistry& registry, std::string model, const ModelInput& input, Mode mode)
    : model_{Graph(registry, model), {}, {}, {}, {}, {}, {}}, name_(std::move(model)), input_(input), mode_(mode) {}

void ModelBuilder::reject_input(const std::string& wanted, const std::string& next_step) const {
  fail(ErrorKind::shape, "[{}] wants {}, got samples of shape {}; {}", name_, wanted, to_string(Shape(input_.shape)),
       next_step);
}

bool ModelBuilder::has_small_images() const {
  return input_.shape.size() == 3 && input_.shape[1] < 64 && input_.shape[2] < 64;
}

void ModelBuilder::require_images(int64_t smallest) const {
  const bool fits = input_.shape.size() == 3 && input_.shape[1] >= smallest && input_.shape[2] >= smallest;
  if (!fits) {
    reject_input(fmt::format("images (channels,height,width) of at least {} x {} pixels", smallest, smallest),
                 "resize them, or choose another model");
  }
}

ValueId ModelBuilder::image(int64_t smallest) {
  require_images(smallest);
  return samples();
}

ValueId ModelBuilder::image_of_labelled_pixels(int64_t smallest) {
  require_images(smallest);
  return image_with(input_.shape[1] * input_.shape[2]);
}

ValueId ModelBuilder::image_of_text(int64_t smallest, int64_t length) {
  require_images(smallest);
  return image_with(length);
}

ValueId ModelBuilder::image_with(int64_t labels) {
  const Shape shape{input_.batch, input_.shape[0], input_.shape[1], input_.shape[2]};
  model_.input = graph().add_input(InputKind::batch, "image", {DType::f32, shape, {}});
  model_.labels = graph().add_input(InputKind::batch, "labels", {DType::i32, {input_.batch * labels}, {}});
  return model_.input;
}

ValueId ModelBuilder::samples() {
  std::vector<int64_t> dims{input_.batch};
  dims.insert(dims.end(), input_.shape.begin(), input_.shape.end());
  model_.input = graph().add_input(InputKind::batch, "image", {DType::f32, Shape(dims), {}});
  const Shape labels = input_.target == DType::f32 ? Shape{input_.batch, input_.classes} : Shape{input_.batch};
  model_.labels = graph().add_input(InputKind::batch, "labels", {input_.target, labels, {}});
  return model_.input;
}

ValueId ModelBuilder::tokens() { return tokens_with(input_.new_tokens > 0 ? input_.new_tokens : input_.shape[0]); }
ValueId ModelBuilder::sequence() { return tokens_with(1); }

ValueId ModelBuilder::tokens_with(int64_t labels) {
  if (input_.shape.size() != 1) reject_input("sequences of tokens (length)", "choose another model");
  if (input_.target != DType::i32)
    fail(ErrorKind::shape, "[{}] predicts tokens, the data want real values; choose another model", name_);
  const int64_t batch = input_.batch, length = input_.new_tokens > 0 ? input_.new_tokens : input_.shape[0];
  model_.input = graph().add_input(InputKind::batch, "tokens", {DType::i32, {batch, length}, {}});
  model_.labels = graph().add_input(InputKind::batch, "labels", {DType::i32, {batch * labels}, {}});
  return model_.input;
}

ValueId ModelBuilder::parameter(const std::string& name, const Shape& shape, Initializer initializer, bool decay) {
  model_.parameters.push_back({name, shape, initializer, true, decay});
  return graph().add_input(InputKind::parameter, name, {DType::f32, shape, {}});
}

ValueId ModelBuilder::parameter(const std::string& name, const Shape& shape, Initializer initializer, bool decay,
                                const MeshAxis& axis) {
  if (axis.size == 1) return parameter(name, shape, initializer, decay);
  Sharding sharding{.whole = shape};
  sharding.split.resize(static_cast<size_t>(shape.rank()));
  sharding.split[0] = axis;
  model_.parameters.push_back({name, shape, initializer, true, decay});
  const ValueId part = graph().add_input(InputKind::parameter, name, {DType::f32, part_shape(sharding), {}});
  graph().set_sharding(part, std::move(sharding));
  return part;
}

ValueId ModelBuilder::state(const std::string& name, const Shape& shape) {
  model_.parameters.push_back({name, shape, {}, false, false});
  return graph().add_input(InputKind::state, name, {DType::f32, shape, {}});
}

ValueId ModelBuilder::running_statistic(const std::string& name, int64_t channels, Initializer::Kind kind) {
  model_.parameters.push_back({name, {channels}, {kind, 0}, false, false});
  return graph().add_input(InputKind::state, name, {DType::f32, {channels}, {}});
}

ValueId ModelBuilder::conv(ValueId x, const std::string& name, const ConvLayer& layer) {
  const int64_t inputs = shape(x)[1] / layer.groups, area = layer.kernel * layer.kernel;
  // PyTorch's fan out of grouped convolutions counts all output channels.
  const Initializer start = weight_start(layer.start, inputs * area, layer.channels * area);
  const ValueId weight = parameter(name + ".weight", {layer.channels, inputs, layer.kernel, layer.kernel}, start, true);
  const ops::Conv2dOptions options{
      .stride = {layer.stride, layer.stride}, .padding = layer.padding, .groups = layer.groups};
  const ValueId product = ops::conv2d(graph(), x, weight, options, name);
  return layer.bias ? add_channel_bias(product, name, bias_start(layer.start, inputs * area)) : product;
}

ValueId ModelBuilder::add_channel_bias(ValueId x, const std::string& name, Initializer start) {
  const int64_t channels = shape(x)[1];
  const ValueId bias = parameter(name + ".bias", {channels}, start, false);
  const ValueId per_channel = ops::reshape(graph(), bias, {1, channels, 1, 1}, name + ".bias_channels");
  return ops::add(graph(), x, per_channel, name + ".biased");
}

ValueId ModelBuilder::conv_transpose(ValueId x, const std::string& name, const ConvTransposeLayer& layer) {
  const Shape input = shape(x);
  // PyTorch takes the second dimension of any weight for the fan in, here that of the outputs.
  const int64_t fan_in = layer.channels * layer.kernel * layer.kernel;
  const ValueId weight = parameter(name + ".weight", {input[1], layer.channels, layer.kernel, layer.kernel},
                                   weight_start(Start::fan_in_uniform, fan_in, fan_in), true);
  const ops::ConvTranspose2dOptions options{
      .stride = {layer.stride, layer.stride}, .padding = layer.padding, .output_padding = layer.output_padding};
  const ValueId product = ops::conv_transpose2d(graph(), x, weight, options, name);
  return layer.bias ? add_channel_bias(product, name, bias_start(Start::fan_in_uniform, fan_in)) : product;
}

ValueId ModelBuilder::batch_norm(ValueId x, const std::string& name, const BatchNormLayer& layer) {
  const Shape input = shape(x);
  const int64_t channels = input[1];
  const auto start = layer.scale_starts_at_zero ? Initializer::Kind::zeros : Initializer::Kind::ones;
  const ValueId scale = layer.scale ? parameter(name + ".weight", {channels}, {start, 0}, false)
                                    : ops::constant(graph(), {channels}, 1, name + ".scale");
  const ValueId shift = parameter(name + ".bias", {channels}, {}, false);
  const std::string mean_name = name + ".running_mean", variance_name = name + ".running_var";
  const ValueId mean = running_statistic(mean_name, channels, Initializer::Kind::zeros);
  const ValueId variance = running_statistic(variance_name, channels, Initializer::Kind::ones);
  const bool is_frozen =
      input_.is_frozen && (!layer.scale || input_.is_frozen(name + ".weight")) && input_.is_frozen(name + ".bias");
  if (mode_ == Mode::inference || is_frozen) {
    return ops::batch_norm_inference(graph(), x, scale, shift, mean, variance, layer.epsilon, name);
  }
  const auto result = ops::batch_norm(graph(), x, scale, shift, layer.epsilon, name);
  const double values = static_cast<double>(input.elements() / channels);
  graph().add_update(mean_name,
                     ops::running_average(graph(), mean, result.mean, layer.momentum, 1, mean_name + ".next"));
  // PyTorch keeps the unbiased variance, though it normalises by the biased one.
  graph().add_update(variance_name, ops::running_average(graph(), variance, result.variance, layer.momentum,
                                                         values / (values - 1), variance_name + ".next"));
  return result.output;
}

void ModelBuilder::add_loss(ValueId loss) {
  if (mode_ != Mode::training) return;
  ValueId& sum = model_.extra_loss;
  sum = sum.valid() ? ops::add(graph(), sum, loss) : loss;
}

ValueId ModelBuilder::linear(ValueId x, const std::string& name, const LinearLayer& layer) {
  const int64_t inputs = shape(x)[shape(x).rank() - 1];
  const ValueId weight =
      parameter(name + ".weight", {layer.width, inputs}, weight_start(layer.start, inputs, layer.width), true);
  model_.parameters.back().blocks = layer.blocks;
  model_.parameters.back().unit = layer.unit;
  const ValueId product = ops::matmul(graph(), x, weight, false, true, name);
  if (!layer.bias) return product;
  const ValueId bias = parameter(name + ".bias", {layer.width}, bias_start(layer.start, inputs), false);
  return ops::add(graph(), product, bias, name + ".biased");
}

ValueId ModelBuilder::layer_norm(ValueId x, const std::string& name, double epsilon) {
  const int64_t width = shape(x)[shape(x).rank() - 1];
  const ValueId scale = parameter(name + ".weight", {width}, {Initializer::Kind::ones, 0}, false);
  const ValueId shift = parameter(name + ".bias", {width}, {}, false);
  return ops::layer_norm(graph(), x, scale, shift, epsilon, name);
}

ValueId ModelBuilder::embedding(ValueId indices, const std::string& name, int64_t rows, int64_t width) {
  const ValueId table =
      parameter(name + ".weight", {rows, width}, weight_start(Start::small_normal, rows, width), true);
  return ops::embedding(graph(), table, indices, name);
}

ValueId ModelBuilder::scalar(const std::string& name) {
  if (const GraphInput* input = graph().find_input(name)) return input->value;
  return graph().add_input(InputKind::scalar, name, {DType::i64, {}, {}});
}

ValueId ModelBuilder::dropout(ValueId x, double probability, const std::string& name) {
  if (mode_ == Mode::inference || probability == 0) return x;
  const ValueId seed = scalar("seed"), step = scalar("step");
  return ops::dropout(graph(), x, seed, step, probability, dropouts_++, name);
}

Model ModelBuilder::finish(ValueId logits) {
  model_.logits = logits;
  return std::move(model_);
}

}  // namespace weft::models
