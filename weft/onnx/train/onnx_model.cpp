#include "weft/onnx/train/onnx_model.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/train/last_layer.h"

namespace weft::onnx {

namespace {

/// The one input that a run gives.
ValueInfo input_of(const Model& model) {
  std::vector<ValueInfo> wanted;
  for (const ValueInfo& info : model.graph.inputs)
    if (!model.graph.initializers.contains(info.name)) wanted.push_back(info);
  if (wanted.size() == 1) return wanted[0];
  std::string names;
  for (const ValueInfo& info : wanted) names += (names.empty() ? "'" : ", '") + info.name + "'";
  fail(ErrorKind::usage,
       "[onnx] '{}' has the inputs {}; weft trains models with one input, which it feeds from the data", model.path,
       names.empty() ? "of nothing" : names);
}

/// [N,..]: what the data give, checked against what the file says.
TensorType input_type(const Model& model, const ValueInfo& info, const models::ModelInput& input) {
  const bool is_tokens = input.shape.size() == 1 && info.dtype && is_integer(*info.dtype);
  std::vector<int64_t> shape = input.shape;
  shape.insert(shape.begin(), input.batch);
  bool fits = !info.shape || info.shape->size() == shape.size();
  for (size_t axis = 1; fits && info.shape && axis < shape.size(); ++axis)
    fits = !(*info.shape)[axis].size || *(*info.shape)[axis].size == shape[axis];
  if (!fits)
    fail(ErrorKind::shape, "[onnx] '{}' reads {}, the data give {}; add `?resize=` to the data, or choose others",
         model.path, describe(info), to_string(Shape(shape)));
  if (info.shape && !info.shape->empty() && (*info.shape)[0].size && *(*info.shape)[0].size != input.batch)
    fail(ErrorKind::shape, "[onnx] '{}' is for batches of {} alone, not of {}; export it with an open batch",
         model.path, *(*info.shape)[0].size, input.batch);
  return {is_tokens ? *info.dtype : DType::f32, Shape(shape), {}};
}

std::vector<models::ParameterSpec> parameters_of(const Graph& graph, const std::map<std::string, Tensor>& tensors,
                                                 const std::set<std::string>& fresh, int64_t last_inputs) {
  std::vector<models::ParameterSpec> parameters;
  for (const GraphInput& input : graph.inputs()) {
    const auto found = tensors.find(input.name);
    if (found == tensors.end()) continue;
    models::ParameterSpec parameter;
    parameter.name = input.name;
    parameter.shape = found->second.shape();
    parameter.trainable = input.kind == InputKind::parameter;
    parameter.decay = parameter.shape.rank() > 1;
    if (fresh.contains(input.name)) {
      parameter.initializer = {models::Initializer::Kind::uniform, 1 / std::sqrt(static_cast<double>(last_inputs))};
    } else {
      parameter.start = found->second;
    }
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

models::Model build(const Evaluate& evaluate, const OpRegistry& registry, const models::ModelInput& input,
                    const models::ModelOptions& options, models::Mode mode) {
  const auto file = options.find("file");
  if (file == options.end() || file->second.empty())
    fail(ErrorKind::usage, "[onnx] names no file; write --model onnx:FILE");
  const auto norm = options.find("batch_norm");
  const bool keeps_statistics = norm != options.end() && norm->second == "keep";
  if (norm != options.end() && norm->second != "keep" && norm->second != "train")
    fail(ErrorKind::usage, "[onnx] model.batch_norm = '{}': it is train or keep", norm->second);
  Model source = read_model(file->second);
  drop_last_softmax(source);
  const ValueInfo read = input_of(source);
  const TensorType type = input_type(source, read, input);
  const FreshLayer fresh = with_classes(source, input.classes);
  const LowerableModel lowerable(source, standard_operators(), registry, evaluate);
  LowerRequest request;
  request.weights = Weights::parameters;
  request.is_training = mode == models::Mode::training && !keeps_statistics;
  request.is_frozen = input.is_frozen;
  const bool is_tokens = is_integer(type.dtype);
  const std::string data_name = is_tokens ? "tokens" : "image";
  request.input_names[read.name] = data_name;
  // Tokens come as i32, and a model may want i64.
  request.live[read.name] = TensorType{is_tokens ? DType::i32 : DType::f32, type.shape, {}};
  request.cast_inputs[read.name] = type.dtype;
  Segment segment = [&] {
    try {
      return lowerable.lower(request);
    } catch (const NeedsValue& needs) {
      fail(ErrorKind::usage, "[onnx] '{}': the numbers in '{}' decide shapes; such a model runs, but cannot be trained",
           source.path, needs.value);
    }
  }();
  if (segment.next_node < lowerable.model().graph.nodes.size())
    fail(ErrorKind::usage, "[onnx] '{}' cannot be trained: {} wants numbers that only a run gives", source.path,
         describe(lowerable.model().graph.nodes[segment.next_node]));
  const std::string output = source.graph.outputs.at(0).name;
  if (!segment.outputs.contains(output))
    fail(ErrorKind::usage, "[onnx] the output '{}' of '{}' does not depend on its input", output, source.path);

  models::Model model{std::move(segment.graph), {}, {}, {}, {}, {}, {}};
  model.logits = model.graph.find_output(segment.outputs.at(output))->value;
  model.graph.clear_outputs();
  model.input = model.graph.find_input(data_name)->value;
  const Shape logits = model.graph.shape(model.logits);
  const bool is_values = input.target == DType::f32;
  model.labels = model.graph.add_input(
      InputKind::batch, "labels", {is_values ? DType::f32 : DType::i32, is_values ? logits : Shape{logits[0]}, {}});
  if (logits.rank() != 2)
    fail(ErrorKind::usage, "[onnx] '{}' gives {}; weft trains models that give a row of logits per sample", source.path,
         to_string(logits));
  model.parameters = parameters_of(model.graph, segment.parameters, fresh.parameters, fresh.inputs);
  return model;
}

}  // namespace

models::ModelEntry onnx_model_entry(Evaluate evaluate) {
  models::ModelEntry entry;
  entry.name = "onnx";
  entry.summary = "an ONNX model, trained further: --model onnx:FILE";
  entry.options = {"file=: the ONNX model", "batch_norm=train: or keep, which leaves its statistics as they are"};
  entry.is_made_of_file = true;
  entry.build = [evaluate = std::move(evaluate)](const OpRegistry& registry, const models::ModelInput& input,
                                                 const models::ModelOptions& options, models::Mode mode) {
    return build(evaluate, registry, input, options, mode);
  };
  return entry;
}

}  // namespace weft::onnx
