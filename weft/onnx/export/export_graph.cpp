#include "weft/onnx/export/export_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "weft/base/error.h"
#include "weft/onnx/export/export_operators.h"

namespace weft::onnx {

namespace {

/// Nodes that outputs depend on.
std::vector<bool> find_needed(const Graph& graph) {
  std::vector<bool> needed(graph.nodes().size(), false);
  std::vector<ValueId> open;
  for (const GraphOutput& output : graph.outputs()) open.push_back(output.value);
  while (!open.empty()) {
    const NodeId producer = graph.value(open.back()).producer;
    open.pop_back();
    if (!producer.valid() || needed[static_cast<size_t>(producer.index)]) continue;
    needed[static_cast<size_t>(producer.index)] = true;
    for (const ValueId input : graph.node(producer).inputs) open.push_back(input);
  }
  return needed;
}

ValueInfo info_of(const Emitter& emitter, ValueId value, const std::string& name) {
  ValueInfo info;
  info.kind = ValueInfo::Kind::tensor;
  info.name = name;
  info.dtype = emitter.graph().type(value).dtype;
  info.shape.emplace();
  for (const Size& size : emitter.shape(value)) {
    Dimension dimension;
    if (size.is_fixed())
      dimension.size = size.constant;
    else if (size == Size{0, 1})
      dimension.symbol = "batch";
    info.shape->push_back(dimension);
  }
  return info;
}

/// What is read at last, after nodes that were written under other names: only what some node or output reads stays.
void drop_unread(OnnxGraph& graph) {
  std::set<std::string> read;
  for (const ValueInfo& output : graph.outputs) read.insert(output.name);
  std::vector<OnnxNode> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool is_read = std::any_of(node->outputs.begin(), node->outputs.end(),
                                     [&](const std::string& name) { return read.contains(name); });
    if (!is_read) continue;
    read.insert(node->inputs.begin(), node->inputs.end());
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
  std::erase_if(graph.initializers, [&](const auto& entry) { return !read.contains(entry.first); });
}

/// An output has its own name, whatever its value is called; another value of that name gives way.
void name_outputs(Emitter& emitter) {
  const Graph& graph = emitter.graph();
  std::set<std::string> taken, outputs;
  std::set<int32_t> are_outputs;
  for (const Value& value : graph.values()) taken.insert(value.name);
  for (const GraphOutput& output : graph.outputs()) {
    emitter.rename(output.value, output.name);
    outputs.insert(output.name);
    are_outputs.insert(output.value.index);
  }
  for (size_t index = 0; index < graph.values().size(); ++index) {
    const ValueId value{static_cast<int32_t>(index)};
    const std::string& own = graph.value(value).name;
    if (are_outputs.contains(value.index) || !outputs.contains(own)) continue;
    std::string name = own;
    for (int number = 2; taken.contains(name) || outputs.contains(name); ++number)
      name = fmt::format("{}_{}", own, number);
    taken.insert(name);
    emitter.rename(value, name);
  }
}

/// The format of files in which ONNX's releases have written operators of the version.
int64_t ir_version_of(int64_t opset) {
  if (opset >= 28) return 14;
  if (opset >= 25) return 13;
  if (opset == 24) return 12;
  if (opset == 23) return 11;
  return opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

}  // namespace

Model export_graph(const ExportRequest& request) {
  if (request.opset < kOldestOpset || request.opset > kNewestOpset)
    fail(ErrorKind::usage, "weft writes ONNX's operators of version {} to {}, not {}", kOldestOpset, kNewestOpset,
         request.opset);
  const Graph& graph = request.graph;
  check(request.other == nullptr || request.other->nodes().size() == graph.nodes().size(),
        "a graph has other nodes for another batch");
  Emitter emitter(request);
  OnnxGraph& result = emitter.result();
  result.name = graph.name();
  const std::vector<bool> needed = find_needed(graph);
  const auto users = find_users(graph);
  for (const GraphInput& input : graph.inputs()) {
    const bool is_read = std::any_of(users[static_cast<size_t>(input.value.index)].begin(),
                                     users[static_cast<size_t>(input.value.index)].end(),
                                     [&](NodeId user) { return needed[static_cast<size_t>(user.index)]; });
    if (!is_read) continue;
    const auto parameter = request.parameters.find(input.name);
    if (parameter != request.parameters.end())
      result.initializers[emitter.name(input.value)] = parameter->second;
    else if (input.kind == InputKind::batch)
      result.inputs.push_back(info_of(emitter, input.value, emitter.name(input.value)));
    else
      fail(ErrorKind::usage, "'{}' has no value that could be written", input.name);
  }
  if (result.inputs.empty()) fail(ErrorKind::usage, "a graph that reads nothing cannot be written as ONNX");
  name_outputs(emitter);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    if (!needed[index]) continue;
    const NodeId id{static_cast<int32_t>(index)};
    if (emitter.is_left_out(id)) continue;
    const auto& table = export_operators();
    const auto found = table.find(graph.node(id).op->name);
    if (found == table.end()) emitter.fail(id, "ONNX has no such operator");
    found->second(emitter, id);
  }
  for (const GraphOutput& output : graph.outputs())
    result.outputs.push_back(info_of(emitter, output.value, output.name));
  drop_unread(result);
  Model model;
  model.ir_version = ir_version_of(request.opset);
  model.opsets[""] = request.opset;
  model.metadata = request.metadata;
  model.graph = std::move(result);
  return model;
}

}  // namespace weft::onnx
