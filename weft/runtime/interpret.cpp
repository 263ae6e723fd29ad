#include "weft/runtime/interpret.h"

#include "weft/base/error.h"

namespace weft {
namespace {

/// The tensor that feeds a graph input, in the layout that the graph wants.
Tensor bind_input(const Graph& graph, const GraphInput& input, const std::map<std::string, Tensor>& given) {
  const auto found = given.find(input.name);
  if (found == given.end())
    fail(ErrorKind::usage, "the graph '{}' wants an input '{}' ({}); give a tensor of that name", graph.name(),
         input.name, to_string(graph.type(input.value)));
  const TensorType& want = graph.type(input.value);
  const TensorType& have = found->second.type();
  if (have.shape != want.shape || have.dtype != want.dtype)
    fail(ErrorKind::shape, "the graph '{}' wants '{}' as {}, got {}", graph.name(), input.name, to_string(want),
         to_string(have));
  return have.layout == want.layout ? found->second : found->second.with_layout(want.layout);
}

/// In memory of the device's own, as all of the node's operands.
std::vector<Tensor> run_in(const Device& device, Kernel& kernel, const NodeSignature& node,
                           const std::vector<Tensor>& inputs) {
  MemorySpace& memory = *device.memory();
  std::vector<std::shared_ptr<std::byte>> held;
  const auto allocate = [&](int64_t bytes) {
    held.push_back(memory.allocate(bytes, "an operand of '" + node.name + "'"));
    return held.back().get();
  };
  std::vector<const void*> sources;
  for (const Tensor& input : inputs) {
    std::byte* const source = allocate(input.bytes());
    memory.copy_in(source, input.data(), input.bytes());
    sources.push_back(source);
  }
  std::vector<void*> targets;
  for (const TensorType& type : node.outputs) targets.push_back(allocate(type.bytes()));
  const auto context = device.make_context();
  kernel.run({sources, targets, allocate(kernel.workspace_bytes()), context.get()});
  context->wait();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < targets.size(); ++i) {
    outputs.emplace_back(node.outputs[i]);
    memory.copy_out(outputs[i].data(), static_cast<const std::byte*>(targets[i]), outputs[i].bytes());
  }
  return outputs;
}

}  // namespace

std::vector<Tensor> run_kernel(Kernel& kernel, const NodeSignature& node, const std::vector<Tensor>& inputs) {
  if (inputs.size() != node.inputs.size())
    fail(ErrorKind::shape, "[{}] '{}': wants {} inputs, got {}", node.op->name, node.name, node.inputs.size(),
         inputs.size());
  std::vector<const void*> sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type() != node.inputs[i])
      fail(ErrorKind::shape, "[{}] '{}': input {} was announced as {}, got {}", node.op->name, node.name, i,
           to_string(node.inputs[i]), to_string(inputs[i].type()));
    sources.push_back(inputs[i].data());
  }
  std::vector<Tensor> outputs;
  for (const TensorType& type : node.outputs) outputs.emplace_back(type);
  std::vector<void*> targets;
  for (Tensor& tensor : outputs) targets.push_back(tensor.data());
  const auto workspace = allocate_aligned(kernel.workspace_bytes());
  kernel.run({sources, targets, workspace.get()});
  return outputs;
}

std::vector<Tensor> evaluate_node(const NodeSignature& node, const std::vector<Tensor>& inputs, const Device& device) {
  const std::unique_ptr<Kernel> kernel = device.make_kernel(node);
  return device.memory()->is_host() ? run_kernel(*kernel, node, inputs) : run_in(device, *kernel, node, inputs);
}

std::map<std::string, Tensor> evaluate_graph(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                                             const Device& device) {
  std::vector<Tensor> values(graph.values().size());
  const auto at = [&](ValueId id) -> Tensor& { return values[static_cast<size_t>(id.index)]; };
  for (const GraphInput& input : graph.inputs()) at(input.value) = bind_input(graph, input, inputs);
  for (int32_t index = 0; index < static_cast<int32_t>(graph.nodes().size()); ++index) {
    const Node& node = graph.node({index});
    std::vector<Tensor> operands;
    for (const ValueId id : node.inputs) operands.push_back(at(id));
    const std::vector<Tensor> results = evaluate_node(signature_of(graph, {index}), operands, device);
    for (size_t i = 0; i < results.size(); ++i) at(node.outputs[i]) = results[i];
  }
  std::map<std::string, Tensor> named;
  for (const GraphOutput& output : graph.outputs()) named[output.name] = at(output.value).with_layout({});
  for (const StateUpdate& update : graph.updates()) named[update.state] = at(update.value).with_layout({});
  return named;
}

}  // namespace weft
