#include "weft/quantize/calibrate.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/engine/onnx_session.h"
#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/train/onnx_model.h"
#include "weft/tensor/element.h"

namespace weft::quantize {

namespace {

std::span<const float> numbers_of(const std::string& name, const Tensor& tensor) {
  if (tensor.dtype() != DType::f32)
    fail(ErrorKind::usage, "'{}' is of {}; weft quantizes models that compute in f32", name, name_of(tensor.dtype()));
  return {tensor.data_as<float>(), static_cast<size_t>(tensor.elements())};
}

std::vector<int64_t> integers(const onnx::OnnxNode& node, const std::string& name,
                              const std::vector<int64_t>& fallback) {
  const auto found = node.attributes.find(name);
  const auto* value =
      found == node.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second.value);
  return value == nullptr ? fallback : *value;
}

/// What the rows of weights see, position by position.
class InputSampler {
 public:
  InputSampler(const onnx::OnnxGraph& graph, const Layer& layer, int64_t samples_per_batch, int64_t most_inputs)
      : layer_(layer),
        node_(graph.nodes[layer.node]),
        weight_(graph.initializers.at(layer.weight).tensor()->shape()),
        wanted_(samples_per_batch),
        moments_(static_cast<size_t>(layer.groups), SecondMoments(layer.inputs, layer.inputs <= most_inputs)) {}

  void add(const Tensor& input) { layer_.is_convolution ? add_windows(input) : add_rows(input); }
  std::vector<SecondMoments> take() { return std::move(moments_); }

 private:
  void add_rows(const Tensor& input) {
    const int64_t rows = input.elements() / layer_.inputs, step = std::max<int64_t>(1, rows / wanted_);
    for (int64_t row = 0; row < rows; row += step)
      moments_[0].add({input.data_as<float>() + row * layer_.inputs, static_cast<size_t>(layer_.inputs)});
  }

  /// Rows of one axis count as images of one row.
  void add_windows(const Tensor& input) {
    const bool is_row = weight_.rank() == 3;
    const Shape& in = input.shape();
    const int64_t height = is_row ? 1 : in[2], width = in[in.rank() - 1];
    const int64_t rows = is_row ? 1 : weight_[2], columns = weight_[weight_.rank() - 1];
    const auto pair = [&](const std::string& name, int64_t fallback) {
      std::vector<int64_t> values = integers(node_, name, std::vector<int64_t>(is_row ? 1 : 2, fallback));
      if (is_row) values.insert(values.begin(), fallback);
      return values;
    };
    const auto stride = pair("strides", 1), dilation = pair("dilations", 1);
    const auto [before, after] = padding_of({height, width}, {rows, columns}, stride, dilation, is_row);
    const int64_t out_height = (height + before[0] + after[0] - dilation[0] * (rows - 1) - 1) / stride[0] + 1;
    const int64_t out_width = (width + before[1] + after[1] - dilation[1] * (columns - 1) - 1) / stride[1] + 1;
    const int64_t positions = in[0] * out_height * out_width, step = std::max<int64_t>(1, positions / wanted_);
    std::vector<float> window(static_cast<size_t>(layer_.inputs));
    const int64_t channels = weight_[1];
    for (int64_t position = 0; position < positions; position += step) {
      const int64_t x = position % out_width, y = position / out_width % out_height,
                    n = position / (out_width * out_height);
      for (int64_t group = 0; group < layer_.groups; ++group) {
        size_t at = 0;
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j, ++at) {
              const int64_t h = y * stride[0] - before[0] + i * dilation[0];
              const int64_t w = x * stride[1] - before[1] + j * dilation[1];
              const bool inside = h >= 0 && h < height && w >= 0 && w < width;
              const int64_t channel = group * channels + c;
              window[at] = inside ? input.data_as<float>()[((n * in[1] + channel) * height + h) * width + w] : 0.0f;
            }
        moments_[static_cast<size_t>(group)].add(window);
      }
    }
  }

  /// As the import of the node finds it. Of a row the node knows its one axis alone.
  onnx::Padding padding_of(std::vector<int64_t> sizes, std::vector<int64_t> kernel, std::vector<int64_t> stride,
                           std::vector<int64_t> dilation, bool is_row) const {
    if (is_row)
      for (std::vector<int64_t>* numbers : {&sizes, &kernel, &stride, &dilation}) numbers->erase(numbers->begin());
    onnx::Padding padding = onnx::find_padding(onnx::NodeAttributes(node_, kVersion), sizes, kernel, stride, dilation);
    if (is_row)
      for (std::vector<int64_t>* numbers : {&padding.before, &padding.after}) numbers->insert(numbers->begin(), 0);
    return padding;
  }

  static constexpr int64_t kVersion = 13;  // the oldest that is quantized; padding is alike in all

  const Layer& layer_;
  const onnx::OnnxNode& node_;
  const Shape weight_;
  const int64_t wanted_;
  std::vector<SecondMoments> moments_;
};

/// Tokens come as i32, and a model may want i64.
Tensor as_wanted(const onnx::ValueInfo& info, const Tensor& samples) {
  const DType wanted = info.dtype.value_or(samples.dtype());
  if (wanted == samples.dtype() || !is_integer(wanted) || !is_integer(samples.dtype())) return samples;
  Tensor result(wanted, samples.shape());
  for (int64_t at = 0; at < result.elements(); ++at)
    convert_element(samples.dtype(), samples.data(), at, wanted, result.data(), at);
  return result;
}

}  // namespace

std::map<std::string, onnx::HostValue> inputs_for(const onnx::Model& model, const Tensor& samples) {
  const onnx::Inputs inputs = onnx::inputs_of(model);
  std::map<std::string, onnx::HostValue> values{{inputs.fed.name, as_wanted(inputs.fed, samples)}};
  for (const onnx::ValueInfo& info : inputs.companions)
    values.emplace(info.name, onnx::companion_values(model, info, samples.shape()));
  return values;
}

void run_and_look(const onnx::Model& model, const std::set<std::string>& values, const CalibrationData& data,
                  const Runner& runner, const std::function<void(const std::string&, const Tensor&)>& look) {
  onnx::Model watched = model;
  std::set<std::string> there;
  for (const onnx::ValueInfo& output : watched.graph.outputs) there.insert(output.name);
  std::set<std::string> inputs;
  for (const onnx::ValueInfo& input : watched.graph.inputs) inputs.insert(input.name);
  for (const std::string& value : values) {
    if (there.contains(value) || inputs.contains(value)) continue;
    onnx::ValueInfo info;
    info.name = value;
    watched.graph.outputs.push_back(info);
  }
  engine::OnnxSession session(std::move(watched), runner.ops, runner.device,
                              {.compile = {.precision = {runner.precision, {}}, .threads = runner.device.threads()}});
  for (int64_t batch = 0; batch < data.batches; ++batch) {
    const std::map<std::string, onnx::HostValue> given = inputs_for(model, data.batch(batch));
    const auto outputs = session.run(given);
    for (const std::string& value : values) {
      if (const auto input = given.find(value); input != given.end()) {
        look(value, *input->second.tensor());
        continue;
      }
      const Tensor* tensor = outputs.at(value).tensor();
      if (tensor == nullptr) fail(ErrorKind::usage, "'{}' is no tensor of numbers", value);
      look(value, *tensor);
    }
    if (runner.on_batch) runner.on_batch();
  }
}

std::map<std::string, Histogram> observe(const onnx::Model& model, const std::set<std::string>& values,
                                         const CalibrationData& data, const Runner& runner) {
  std::map<std::string, RealRange> ranges;
  run_and_look(model, values, data, runner, [&](const std::string& name, const Tensor& tensor) {
    widen(ranges[name], numbers_of(name, tensor), name);
  });
  std::map<std::string, Histogram> histograms;
  for (const auto& [name, range] : ranges) histograms.emplace(name, empty_histogram(range));
  run_and_look(model, values, data, runner, [&](const std::string& name, const Tensor& tensor) {
    add(histograms.at(name), numbers_of(name, tensor));
  });
  return histograms;
}

std::map<std::string, std::vector<SecondMoments>> observe_inputs(const onnx::Model& model,
                                                                 const std::vector<Layer>& layers,
                                                                 const CalibrationData& data, const Runner& runner,
                                                                 int64_t most_samples, int64_t most_inputs) {
  std::map<std::string, InputSampler> samplers;
  std::multimap<std::string, std::string> readers;
  std::set<std::string> values;
  for (const Layer& layer : layers) {
    samplers.emplace(
        layer.name, InputSampler(model.graph, layer,
                                 std::max<int64_t>(1, most_samples / std::max<int64_t>(1, data.batches)), most_inputs));
    readers.emplace(layer.input, layer.name);
    values.insert(layer.input);
  }
  run_and_look(model, values, data, runner, [&](const std::string& name, const Tensor& tensor) {
    RealRange range;
    widen(range, numbers_of(name, tensor), name);  // refuses what is not finite
    const auto [begin, end] = readers.equal_range(name);
    for (auto reader = begin; reader != end; ++reader) samplers.at(reader->second).add(tensor);
  });
  std::map<std::string, std::vector<SecondMoments>> moments;
  for (auto& [name, sampler] : samplers) moments.emplace(name, sampler.take());
  return moments;
}

}  // namespace weft::quantize
