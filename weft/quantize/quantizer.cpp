#include "weft/quantize/quantizer.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/onnx/lower/normalize.h"
#include "weft/quantize/adaround.h"
#include "weft/quantize/bias_correction.h"
#include "weft/quantize/equalization.h"
#include "weft/quantize/group_weights.h"
#include "weft/quantize/raise_version.h"

namespace weft::quantize {

namespace {

constexpr int64_t kMostSamples = 4096;  // of a layer's inputs
constexpr int64_t kMostInputs = 2304;   // of a layer whose second moments are kept: 42 MB
constexpr int kEqualizationTurns = 20;
constexpr double kMostBiasSteps = 0x1p30;  // half of what 32 bits hold: the sum that it is added to has the rest

/// The columns of the second layer that read a channel of the first.
std::pair<int64_t, int64_t> columns_of(const Layer& second, int64_t channels, int64_t channel) {
  const int64_t width = second.inputs / channels;
  return {channel * width, (channel + 1) * width};
}

bool needs_moments(const QuantizerOptions& options) {
  return options.rounding == WeightRounding::adaptive || options.by_groups();
}

/// The rows of one group of a convolution.
Matrix rows_of(const Matrix& all, int64_t first, int64_t count) {
  return {count,
          all.columns,
          {all.numbers.begin() + first * all.columns, all.numbers.begin() + (first + count) * all.columns}};
}

}  // namespace

std::vector<std::pair<size_t, size_t>> find_equalizable(const onnx::OnnxGraph& graph,
                                                        const std::vector<Layer>& layers) {
  const ValueUses uses(graph);
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t first = 0; first < layers.size(); ++first) {
    std::string value = layers[first].output;
    auto reader = uses.only_reader(value);
    while (reader && (graph.nodes[*reader].op == "Relu" || graph.nodes[*reader].op == "MaxPool")) {
      value = graph.nodes[*reader].outputs[0];
      reader = uses.only_reader(value);
    }
    if (!reader) continue;
    for (size_t second = 0; second < layers.size(); ++second) {
      const Layer& next = layers[second];
      const bool follows = next.node == *reader && next.input == value && next.groups == 1 && layers[first].groups == 1;
      if (follows && next.inputs % layers[first].outputs == 0 && next.is_convolution == layers[first].is_convolution)
        pairs.emplace_back(first, second);
    }
  }
  return pairs;
}

namespace {

/// Before calibration, which takes long.
void check_numbers(const onnx::OnnxGraph& graph, const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) {
    const Tensor& weight = *graph.initializers.at(layer.weight).tensor();
    const std::vector<float> bias = bias_of(graph, layer);
    const auto is_finite = [](float number) { return std::isfinite(number); };
    if (!std::all_of(weight.data_as<float>(), weight.data_as<float>() + weight.elements(), is_finite) ||
        !std::all_of(bias.begin(), bias.end(), is_finite))
      fail(ErrorKind::data,
           "the weights '{}' or their bias hold NaN or infinity; look for a training that has diverged", layer.weight);
  }
}

}  // namespace

Quantizer::Quantizer(onnx::Model model, const QuantizerOptions& options, const CalibrationData& data,
                     const Runner& runner)
    : folded_(onnx::normalize(std::move(model))), options_(options), data_(data), runner_(runner) {
  if (data.batches < 1) fail(ErrorKind::usage, "there are no samples to calibrate with; give --samples at least 1");
  fold_layers(folded_.graph);
  layers_ = find_layers(folded_.graph);
  if (layers_.empty())
    fail(ErrorKind::usage, "'{}' has no convolution and no matrix product with weights of f32: nothing to quantize",
         folded_.path.empty() ? folded_.graph.name : folded_.path);
  const bool has_convolutions =
      std::any_of(layers_.begin(), layers_.end(), [](const Layer& layer) { return layer.is_convolution; });
  if (options_.rounding == WeightRounding::adaptive && options_.by_groups() && !has_convolutions)
    fail(ErrorKind::usage,
         "rounding is learned for weights of 8 bits, and with {} bits '{}' has none: leave --adaround away",
         options_.bits, folded_.path.empty() ? folded_.graph.name : folded_.path);
  check_numbers(folded_.graph, layers_);
  prepare_version();
  if (options_.equalizes) equalize();
  const bool by_groups = options_.by_groups();
  std::vector<Layer> with_integer_inputs;
  for (const Layer& layer : layers_)
    if (!by_groups || layer.is_convolution) with_integer_inputs.push_back(layer);
  conversions_.shared = find_converted(folded_.graph, with_integer_inputs);
  conversions_.is_signed = options_.symmetric;
  std::set<std::string> sources;
  // Also of what now shares another's scale: where layers are left out, it may stand alone.
  for (const auto& [value, source] : conversions_.shared) sources.insert({value, source});
  const int64_t lowest = options_.symmetric ? -128 : 0, highest = options_.symmetric ? 127 : 255;
  const auto histograms =
      sources.empty() ? std::map<std::string, Histogram>{} : observe(folded_, sources, data_, runner_);
  std::map<std::string, RealRange> ranges;
  for (const auto& [value, histogram] : histograms)
    ranges[value] = choose_range(histogram, options_.calibration, options_.symmetric ? 254 : 255, options_.symmetric);
  for (const auto& [whole, source] : joined_values(folded_.graph, conversions_.shared)) {
    RealRange& range = ranges[source];
    range = {std::min(range.low, ranges.at(whole).low), std::max(range.high, ranges.at(whole).high)};
  }
  for (const auto& [value, range] : ranges)
    conversions_.scales[value] = scale_of(range, lowest, highest, options_.symmetric);
  if (options_.corrects_bias || needs_moments(options_))
    inputs_ = observe_inputs(folded_, layers_, data_, runner_, kMostSamples, needs_moments(options_) ? kMostInputs : 0);
  round_weights();
}

/// Scales per channel came with version 13 of ONNX's operators, groups and 4 bits with 21, 2 bits with 25.
void Quantizer::prepare_version() {
  if (folded_.opset() < 13)
    fail(ErrorKind::usage, "'{}' has operators of version {}; export it anew with version 13 or newer", folded_.path,
         folded_.opset());
  const bool has_groups = options_.by_groups() && std::any_of(layers_.begin(), layers_.end(),
                                                              [](const Layer& layer) { return !layer.is_convolution; });
  if (!has_groups) return;
  raise_version(folded_, options_.bits == 2 ? 25 : 21);
  folded_.ir_version = std::max<int64_t>(folded_.ir_version, options_.bits == 2 ? 13 : 10);
}

void Quantizer::equalize() {
  const auto pairs = find_equalizable(folded_.graph, layers_);
  for (int turn = 0; turn < kEqualizationTurns; ++turn)
    for (const auto& [first_index, second_index] : pairs) {
      const Layer &first = layers_[first_index], &second = layers_[second_index];
      const auto weight_of = [&](const Layer& layer) { return *folded_.graph.initializers.at(layer.weight).tensor(); };
      const Tensor first_tensor = weight_of(first), second_tensor = weight_of(second);
      Matrix a = matrix_of(first, first_tensor), b = matrix_of(second, second_tensor);
      std::vector<float> ranges(static_cast<size_t>(first.outputs), 0);
      for (int64_t channel = 0; channel < first.outputs; ++channel) {
        const auto [begin, end] = columns_of(second, first.outputs, channel);
        for (int64_t row = 0; row < b.rows; ++row)
          for (int64_t column = begin; column < end; ++column)
            ranges[static_cast<size_t>(channel)] =
                std::max(ranges[static_cast<size_t>(channel)], std::fabs(b.row(row)[column]));
      }
      const std::vector<float> scales = equalizing_scales(row_ranges(a), ranges);
      std::vector<float> bias = bias_of(folded_.graph, first);
      for (int64_t channel = 0; channel < first.outputs; ++channel) {
        const float scale = scales[static_cast<size_t>(channel)];
        for (int64_t column = 0; column < a.columns; ++column) a.row(channel)[column] /= scale;
        if (!bias.empty()) bias[static_cast<size_t>(channel)] /= scale;
        const auto [begin, end] = columns_of(second, first.outputs, channel);
        for (int64_t row = 0; row < b.rows; ++row)
          for (int64_t column = begin; column < end; ++column) b.row(row)[column] *= scale;
      }
      set_weight(folded_.graph, first, tensor_of(first, a, first_tensor.shape()));
      set_weight(folded_.graph, second, tensor_of(second, b, second_tensor.shape()));
      if (!bias.empty()) set_bias(folded_.graph, first, bias);
    }
  drop_unread(folded_.graph);
}

/// A bias counts steps of the sum in 32 bits. Rows whose weights are next to nothing get scales with which it has room
/// there: nothing of such weights is missed.
void Quantizer::make_room_for_bias(const Layer& layer, IntegerMatrix& quantized) const {
  const auto shared = conversions_.shared.find(layer.input);
  if (shared == conversions_.shared.end() || !conversions_.scales.contains(shared->second)) return;
  const auto input = static_cast<double>(conversions_.scales.at(shared->second).scale);
  const std::vector<float> bias = bias_of(folded_.graph, layer);
  float least_of_all = 0;
  for (size_t row = 0; row < bias.size(); ++row) {
    const auto least = static_cast<float>(1.001 * std::fabs(static_cast<double>(bias[row])) / (input * kMostBiasSteps));
    least_of_all = std::max(least_of_all, least);
    if (options_.per_channel) quantized.scales[row] = std::max(quantized.scales[row], least);
  }
  if (!options_.per_channel)
    for (float& scale : quantized.scales) scale = std::max(scale, least_of_all);
}

IntegerMatrix Quantizer::rounded(const Layer& layer, const Matrix& weights, bool by_groups) const {
  const int bits = bits_of(by_groups);
  const int64_t group = by_groups ? options_.group : layer.inputs;
  const bool per_row = by_groups || options_.per_channel;
  IntegerMatrix result = scales_of(weights, bits, group, per_row, by_groups);
  if (!by_groups) make_room_for_bias(layer, result);
  const auto moments = inputs_.find(layer.name);
  const bool has_moments = moments != inputs_.end() && moments->second.front().has_matrix();
  if (by_groups && has_moments) {
    round_by_moments(result, weights, moments->second.front(), bits);
    return result;
  }
  if (options_.rounding != WeightRounding::adaptive || !has_moments) {
    round_to_nearest(result, weights, bits);
    return result;
  }
  const int64_t rows = layer.outputs / layer.groups;
  for (int64_t part = 0; part < layer.groups; ++part) {
    const Matrix own = rows_of(weights, part * rows, rows);
    IntegerMatrix of_part{rows, weights.columns, result.group, std::vector<int8_t>(own.numbers.size()), {}};
    of_part.scales.assign(result.scales.begin() + part * rows * result.groups(),
                          result.scales.begin() + (part + 1) * rows * result.groups());
    round_adaptively(of_part, own, moments->second[static_cast<size_t>(part)], bits);
    std::copy(of_part.integers.begin(), of_part.integers.end(),
              result.integers.begin() + part * rows * weights.columns);
  }
  return result;
}

void Quantizer::round_weights() {
  for (const Layer& layer : layers_) {
    const Matrix weights = matrix_of(layer, *folded_.graph.initializers.at(layer.weight).tensor());
    QuantizedLayer quantized;
    quantized.by_groups = options_.by_groups() && !layer.is_convolution;
    quantized.bits = bits_of(quantized.by_groups);
    quantized.per_channel = options_.per_channel;
    quantized.weights = rounded(layer, weights, quantized.by_groups);
    quantized.bias = bias_of(folded_.graph, layer);
    const auto moments = inputs_.find(layer.name);
    const bool can_have_bias = folded_.graph.nodes[layer.node].op != "MatMul";
    if (options_.corrects_bias && can_have_bias && moments != inputs_.end()) {
      quantized.bias.resize(static_cast<size_t>(layer.outputs), 0);
      const int64_t rows = layer.outputs / layer.groups;
      for (int64_t part = 0; part < layer.groups; ++part) {
        IntegerMatrix own{rows, weights.columns, quantized.weights.group, {}, {}};
        const int64_t groups = quantized.weights.groups();
        own.integers.assign(quantized.weights.integers.begin() + part * rows * weights.columns,
                            quantized.weights.integers.begin() + (part + 1) * rows * weights.columns);
        own.scales.assign(quantized.weights.scales.begin() + part * rows * groups,
                          quantized.weights.scales.begin() + (part + 1) * rows * groups);
        const auto correction =
            bias_correction(own, rows_of(weights, part * rows, rows), moments->second[static_cast<size_t>(part)]);
        for (int64_t row = 0; row < rows; ++row)
          quantized.bias[static_cast<size_t>(part * rows + row)] += correction[static_cast<size_t>(row)];
      }
    }
    conversions_.layers[layer.name] = std::move(quantized);
  }
}

onnx::Model Quantizer::quantized(const std::set<std::string>& left_out) const {
  onnx::Model model = folded_;
  Conversions conversions = conversions_;
  std::vector<Layer> integer_layers;
  for (const Layer& layer : layers_) {
    if (left_out.contains(layer.name))
      conversions.layers.erase(layer.name);
    else if (!conversions.layers.at(layer.name).by_groups)
      integer_layers.push_back(layer);
  }
  conversions.shared = find_converted(folded_.graph, integer_layers);
  add_conversions(model, conversions);
  drop_unread(model.graph);
  return model;
}

std::vector<LayerError> Quantizer::layer_errors(const std::set<std::string>& left_out) const {
  std::set<std::string> values;
  for (const Layer& layer : layers_) values.insert(layer.output);
  std::map<std::string, Tensor> exact;
  run_and_look(folded_, values, first_batch(), runner_,
               [&](const std::string& name, const Tensor& tensor) { exact[name] = tensor.clone(); });
  std::map<std::string, double> decibels;
  run_and_look(quantized(left_out), values, first_batch(), runner_, [&](const std::string& name, const Tensor& tensor) {
    const Tensor& wanted = exact.at(name);
    double signal = 0, noise = 0;
    for (int64_t at = 0; at < tensor.elements(); ++at) {
      const double x = static_cast<double>(wanted.data_as<float>()[at]);
      const double difference = static_cast<double>(tensor.data_as<float>()[at]) - x;
      signal += x * x;
      noise += difference * difference;
    }
    decibels[name] = noise == 0 ? INFINITY : 10 * std::log10(signal / noise);
  });
  std::vector<LayerError> errors;
  for (const Layer& layer : layers_)
    errors.push_back({layer.name, left_out.contains(layer.name) ? 32 : conversions_.layers.at(layer.name).bits,
                      layer.outputs * layer.inputs, decibels.at(layer.output)});
  return errors;
}

double Quantizer::output_change(const onnx::Model& quantized) const {
  const std::string output = folded_.graph.outputs.at(0).name;
  std::vector<float> exact;
  run_and_look(folded_, {output}, first_batch(), runner_, [&](const std::string&, const Tensor& tensor) {
    exact.assign(tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements());
  });
  double change = 0;
  run_and_look(quantized, {output}, first_batch(), runner_, [&](const std::string&, const Tensor& tensor) {
    for (size_t at = 0; at < exact.size(); ++at) {
      const double difference = static_cast<double>(tensor.data_as<float>()[at]) - static_cast<double>(exact[at]);
      change += difference * difference;
    }
  });
  return change;
}

std::vector<std::string> Quantizer::by_sensitivity() const {
  std::vector<std::pair<double, std::string>> changes;
  std::set<std::string> all;
  for (const Layer& layer : layers_) all.insert(layer.name);
  for (const Layer& layer : layers_) {
    std::set<std::string> others = all;
    others.erase(layer.name);
    changes.emplace_back(-output_change(quantized(others)), layer.name);
  }
  std::sort(changes.begin(), changes.end());
  std::vector<std::string> names;
  for (const auto& entry : changes) names.push_back(entry.second);
  return names;
}

}  // namespace weft::quantize
