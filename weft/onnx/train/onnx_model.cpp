#include "weft/onnx/train/onnx_model.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/lower/normalize.h"
#include "weft/onnx/train/last_layer.h"
#include "weft/onnx/train/parameters.h"
#include "weft/ops/ops.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

/// What goes with tokens, by the names that exporters of language models give: it follows from the tokens' shape.
enum class Companion { none, mask, token_types, positions };

Companion companion_of(const ValueInfo& info) {
  const auto is_called = [&](const char* part) { return info.name.find(part) != std::string::npos; };
  if (is_called("mask")) return Companion::mask;
  if (is_called("token_type")) return Companion::token_types;
  return is_called("position") ? Companion::positions : Companion::none;
}

}  // namespace

Inputs inputs_of(const Model& model) {
  Inputs inputs;
  std::vector<ValueInfo> wanted;
  for (const ValueInfo& info : model.graph.inputs)
    if (!model.graph.initializers.contains(info.name)) wanted.push_back(info);
  const bool is_alone = wanted.size() == 1;
  std::vector<ValueInfo> fed;
  for (const ValueInfo& info : wanted)
    (is_alone || companion_of(info) == Companion::none ? fed : inputs.companions).push_back(info);
  if (fed.size() == 1) {
    inputs.fed = fed[0];
    return inputs;
  }
  std::string names;
  for (const ValueInfo& info : wanted) names += (names.empty() ? "'" : ", '") + info.name + "'";
  fail(ErrorKind::usage,
       "[onnx] '{}' has the inputs {}; weft feeds one from the data, and fills masks, token types and positions itself",
       model.path, names.empty() ? "of nothing" : names);
}

Tensor companion_values(const Model& model, const ValueInfo& info, const Shape& tokens) {
  if (info.shape && info.shape->size() != 2)
    fail(ErrorKind::usage, "[onnx] '{}': the input {} is not of the tokens' shape, so weft cannot fill it", model.path,
         describe(info));
  Tensor result(info.dtype.value_or(DType::i64), tokens);
  const Companion companion = companion_of(info);
  for (int64_t index = 0; index < result.elements(); ++index)
    store_number(result.dtype(), result.data(), index,
                 companion == Companion::mask          ? int64_t{1}
                 : companion == Companion::token_types ? int64_t{0}
                                                       : index % tokens[1]);
  return result;
}

namespace {

/// [N,classes] as they are; of tokens [N,T,V] and of pixels [N,C,H,W] a row each. Of a larger vocabulary than the
/// data's the rest is left out.
ValueId rows_of_logits(const std::string& path, Graph& graph, ValueId logits, const models::ModelInput& input) {
  const Shape shape = graph.shape(logits);
  const bool is_of_tokens = input.shape.size() == 1 && shape.rank() == 3 && shape[1] == input.shape[0];
  const bool is_of_pixels =
      input.shape.size() == 3 && shape.rank() == 4 && shape[2] == input.shape[1] && shape[3] == input.shape[2];
  if (shape.rank() == 2) return logits;
  if (is_of_pixels) {
    logits = ops::transpose(graph, logits, {0, 2, 3, 1});
    return ops::reshape(graph, logits, {shape[0] * shape[2] * shape[3], shape[1]});
  }
  if (!is_of_tokens)
    fail(ErrorKind::usage,
         "[onnx] '{}' gives {}; weft trains models that give a row of logits per sample, per token or per pixel", path,
         to_string(shape));
  if (shape[2] > input.classes) logits = ops::slice(graph, logits, {0, 0, 0}, {shape[0], shape[1], input.classes});
  return ops::reshape(graph, logits, {shape[0] * shape[1], std::min(shape[2], input.classes)});
}

/// Whether the last layer stays although it knows more tokens than the data have.
bool keeps_vocabulary(const Model& model, const models::ModelInput& input) {
  const ValueInfo& output = model.graph.outputs.at(0);
  const bool is_of_tokens = input.shape.size() == 1 && output.shape && output.shape->size() == 3;
  return is_of_tokens && output.shape->back().size && *output.shape->back().size >= input.classes;
}

/// How the model reads what the data give.
struct Fed {
  TensorType type;                 // of the data
  DType read_as = DType::f32;      // tokens as i64, for example
  bool has_channels_last = false;  // the data's [N,C,H,W] become [N,H,W,C]
};

/// Samples of this shape, whatever their number is.
bool takes(const ValueInfo& info, const std::vector<int64_t>& shape) {
  if (!info.shape) return true;
  if (info.shape->size() != shape.size()) return false;
  for (size_t axis = 1; axis < shape.size(); ++axis)
    if ((*info.shape)[axis].size && *(*info.shape)[axis].size != shape[axis]) return false;
  return true;
}

/// Checked against what the file says.
Fed find_fed(const Model& model, const ValueInfo& info, const models::ModelInput& input) {
  Fed fed;
  const bool is_tokens = input.shape.size() == 1 && info.dtype && is_integer(*info.dtype);
  std::vector<int64_t> shape = input.shape;
  shape.insert(shape.begin(), input.batch);
  // Tokens come as i32, and a model may want i64.
  fed.type = {is_tokens ? DType::i32 : DType::f32, Shape(shape), {}};
  fed.read_as = is_tokens ? *info.dtype : DType::f32;
  if (!takes(info, shape)) {
    // TensorFlow's images have their channels last.
    fed.has_channels_last = shape.size() == 4 && takes(info, {shape[0], shape[2], shape[3], shape[1]});
    if (!fed.has_channels_last)
      fail(ErrorKind::shape, "[onnx] '{}' reads {}, the data give {}; add `?resize=` to the data, or choose others",
           model.path, describe(info), to_string(Shape(shape)));
  }
  if (info.shape && !info.shape->empty() && (*info.shape)[0].size && *(*info.shape)[0].size != input.batch)
    fail(ErrorKind::shape, "[onnx] '{}' is for batches of {} alone, not of {}; export it with an open batch",
         model.path, *(*info.shape)[0].size, input.batch);
  return fed;
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

/// Training would change nothing.
void refuse_without_parameters(const Model& source, const Graph& graph) {
  for (const GraphInput& input : graph.inputs())
    if (input.kind == InputKind::parameter) return;
  fail(ErrorKind::usage,
       "[onnx] '{}' has nothing to train: parameters are tensors of reals with more than one number that reach the "
       "output, and its tensors are: {}; export it with weights of reals, before any quantization",
       source.path, tensors_in_words(source.graph));
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
  std::set<std::string> stored;
  for (const auto& [name, value] : source.graph.initializers) stored.insert(name);
  source = normalize(std::move(source));
  widen_reals(source);
  drop_last_softmax(source);
  const Inputs inputs = inputs_of(source);
  const ValueInfo& read = inputs.fed;
  const Fed fed = find_fed(source, read, input);
  const FreshLayer fresh = keeps_vocabulary(source, input) ? FreshLayer{} : with_classes(source, input.classes);
  const LowerableModel lowerable(source, standard_operators(), registry, evaluate);
  LowerRequest request;
  request.parameters = find_parameters(source.graph, stored);
  request.is_training = mode == models::Mode::training && !keeps_statistics;
  request.is_frozen = input.is_frozen;
  const std::string data_name = is_integer(fed.type.dtype) ? "tokens" : "image";
  request.input_names[read.name] = data_name;
  request.live[read.name] = fed.type;
  request.prepare_inputs[read.name] = [&](Graph& graph, ValueId x) {
    if (fed.has_channels_last) x = ops::transpose(graph, x, {0, 2, 3, 1});
    return fed.read_as == fed.type.dtype ? x : ops::cast(graph, x, fed.read_as);
  };
  for (const ValueInfo& info : inputs.companions)
    request.live[info.name] = HostValue(companion_values(source, info, fed.type.shape));
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
  refuse_without_parameters(source, segment.graph);
  const std::string output = source.graph.outputs.at(0).name;
  if (!segment.outputs.contains(output))
    fail(ErrorKind::usage, "[onnx] the output '{}' of '{}' does not depend on its input", output, source.path);

  models::Model model{std::move(segment.graph), {}, {}, {}, {}, {}, {}};
  model.logits = model.graph.find_output(segment.outputs.at(output))->value;
  model.graph.clear_outputs();
  model.logits = rows_of_logits(source.path, model.graph, model.logits, input);
  model.input = model.graph.find_input(data_name)->value;
  const Shape logits = model.graph.shape(model.logits);
  const bool is_values = input.target == DType::f32;
  model.labels = model.graph.add_input(
      InputKind::batch, "labels", {is_values ? DType::f32 : DType::i32, is_values ? logits : Shape{logits[0]}, {}});
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
