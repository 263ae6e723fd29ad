#include "weft/deploy/onnx_graphs.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/deploy/inference_graph.h"

namespace weft::deploy {

namespace {

/// What runs any ONNX file: the flags are for models that are compiled.
constexpr const char* kSession = "`weft infer` without --batch, --streams, --bind and --json, on .npy files";

}  // namespace

OnnxGraphs::OnnxGraphs(const Library& library, onnx::Model model, std::map<std::string, int64_t> sizes)
    : sizes_(std::move(sizes)),
      device_(library.device.make({.threads = 1, .kernels = library.kernels})),
      lowerable_(std::move(model), onnx::standard_operators(), library.ops,
                 [device = device_](const NodeSignature& node, const std::vector<Tensor>& operands) {
                   return device->evaluate(node, operands);
                 }) {
  check_sizes();
}

/// Every name that is bound stands for an open dimension.
void OnnxGraphs::check_sizes() const {
  const std::vector<std::string> open = onnx::open_dimensions(model().graph);
  for (const auto& [name, size] : sizes_) {
    if (std::find(open.begin(), open.end(), name) == open.end())
      fail(ErrorKind::usage, "--bind {}={}: no input of '{}' has an open dimension of that name{}", name, size,
           model().path, open.empty() ? "; leave it away" : suggestion(name, open));
    if (name == batch_name())
      fail(ErrorKind::usage, "--bind {0}={1}: '{0}' is the batch of '{2}'; write --batch {1}", name, size,
           model().path);
  }
}

std::string OnnxGraphs::batch_name() const {
  const onnx::ValueInfo& first = *inputs().front();
  return first.shape && !first.shape->empty() ? first.shape->front().symbol : std::string();
}

std::vector<const onnx::ValueInfo*> OnnxGraphs::inputs() const {
  std::vector<const onnx::ValueInfo*> wanted;
  for (const onnx::ValueInfo& info : model().graph.inputs)
    if (!model().graph.initializers.contains(info.name)) wanted.push_back(&info);
  if (wanted.empty()) fail(ErrorKind::usage, "'{}' reads nothing; there is nothing to run", model().path);
  return wanted;
}

std::optional<int64_t> OnnxGraphs::fixed_batch() const {
  const onnx::ValueInfo& first = *inputs().front();
  if (!first.shape || first.shape->empty()) return 1;
  return first.shape->front().size;
}

TensorType OnnxGraphs::type_of(const onnx::ValueInfo& info, int64_t batch) const {
  if (!info.shape || !info.dtype)
    fail(ErrorKind::usage, "'{}' does not say what its input '{}' is ({}); weft compiles models that do", model().path,
         info.name, describe(info));
  const std::string batch_symbol = batch_name();
  std::vector<int64_t> dims;
  for (size_t axis = 0; axis < info.shape->size(); ++axis) {
    const onnx::Dimension& dimension = (*info.shape)[axis];
    const auto bound = sizes_.find(dimension.symbol);
    // Without a name of its own the first dimension of every input is the batch.
    const bool is_batch =
        dimension.symbol.empty() ? axis == 0 && batch_symbol.empty() : dimension.symbol == batch_symbol;
    if (dimension.size)
      dims.push_back(*dimension.size);
    else if (is_batch)
      dims.push_back(batch);
    else if (bound != sizes_.end())
      dims.push_back(bound->second);
    else
      fail(ErrorKind::usage, "'{}' leaves the dimension {} ('{}') of '{}' open; bind it, as in --bind {}=128",
           model().path, axis, dimension.symbol, info.name, dimension.symbol.empty() ? "NAME" : dimension.symbol);
  }
  return {*info.dtype, Shape(dims), {}};
}

Graph OnnxGraphs::graph_for(int64_t batch) const {
  onnx::LowerRequest request;
  request.keeps_repeats = true;
  for (const onnx::ValueInfo* info : inputs()) request.live[info->name] = onnx::LiveValue(type_of(*info, batch));
  onnx::Segment segment = [&] {
    try {
      return lowerable_.lower(request);
    } catch (const onnx::NeedsValue& needs) {
      fail(ErrorKind::usage,
           "the numbers of '{}' decide sizes in '{}', so that it has no graph of its own; run the ONNX file by {}",
           needs.value, model().path, kSession);
    }
  }();
  if (segment.next_node < model().graph.nodes.size())
    fail(ErrorKind::usage, "'{}' is no single graph: {} needs what only a run gives; run the ONNX file by {}",
         model().path, describe(model().graph.nodes[segment.next_node]), kSession);
  std::vector<std::pair<std::string, ValueId>> outputs;
  for (const onnx::ValueInfo& info : model().graph.outputs) {
    const auto found = segment.outputs.find(info.name);
    if (found == segment.outputs.end())
      fail(ErrorKind::usage, "the output '{}' of '{}' does not depend on its inputs; leave it away", info.name,
           model().path);
    outputs.emplace_back(info.name, segment.graph.find_output(found->second)->value);
  }
  segment.graph.clear_outputs();
  for (const auto& [name, value] : outputs) segment.graph.add_output(name, value);
  segment.graph.set_name("onnx");
  std::vector<std::string> order;
  for (const onnx::ValueInfo* info : inputs())
    if (const auto found = segment.inputs.find(info->name); found != segment.inputs.end())
      order.push_back(found->second);
  return with_constants(segment.graph, {}, order);
}

}  // namespace weft::deploy
