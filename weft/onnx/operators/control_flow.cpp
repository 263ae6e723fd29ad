// Branches and loops whose course only a run gives: the host runs their bodies, each a model of its own. What is known
// beforehand becomes part of the graph (lower/lower.cpp).
#include <limits>

#include "weft/onnx/operators/host_tensors.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

bool is_true(const HostContext& node, const HostValue& value) {
  const Tensor* tensor = value.tensor();
  if (tensor == nullptr || tensor->elements() != 1) node.fail("wants one boolean, got " + describe(value));
  return integers_of(*tensor)[0] != 0;
}

Tensor boolean(bool value) {
  Tensor tensor(DType::boolean, Shape{});
  *tensor.data_as<uint8_t>() = value ? 1 : 0;
  return tensor;
}

Tensor number(int64_t value) {
  Tensor tensor(DType::i64, Shape{});
  *tensor.data_as<int64_t>() = value;
  return tensor;
}

std::vector<HostValue> run_if(const HostContext& node) {
  return node.run(node.graph_of(is_true(node, node.input(0)) ? "then_branch" : "else_branch"), {});
}

std::vector<HostValue> run_loop(const HostContext& node) {
  const OnnxGraph& body = node.graph_of("body");
  const int64_t most = node.has(0) ? node.integer_at(0) : std::numeric_limits<int64_t>::max();
  bool goes_on = !node.has(1) || is_true(node, node.input(1));
  const size_t carried = body.inputs.size() < 2 ? 0 : body.inputs.size() - 2;
  if (body.outputs.size() < carried + 1) node.fail("has a body that does not give back what it carries");
  std::vector<HostValue> state;
  for (size_t index = 0; index < carried; ++index)
    state.push_back(node.has(static_cast<int>(index) + 2) ? node.input(static_cast<int>(index) + 2) : HostValue{});
  std::vector<std::vector<Tensor>> gathered(body.outputs.size() - 1 - carried);
  for (int64_t turn = 0; turn < most && goes_on; ++turn) {
    std::vector<HostValue> inputs = {number(turn), boolean(goes_on)};
    inputs.insert(inputs.end(), state.begin(), state.end());
    const auto results = node.run(body, inputs);
    goes_on = is_true(node, results[0]);
    for (size_t index = 0; index < carried; ++index) state[index] = results[index + 1];
    for (size_t index = 0; index < gathered.size(); ++index) {
      const Tensor* part = results[index + 1 + carried].tensor();
      if (part == nullptr) node.fail("gathers what is no tensor");
      gathered[index].push_back(*part);
    }
  }
  for (size_t index = 0; index < gathered.size(); ++index) {
    const ValueInfo& info = body.outputs[index + 1 + carried];
    state.emplace_back(stacked(node, gathered[index], 0, false, info));
  }
  return state;
}

std::vector<HostValue> run_scan(const HostContext& node) {
  const OnnxGraph& body = node.graph_of("body");
  if (node.opset() < 9) node.fail("is of a version before 9, which weft has not");
  const auto scanned = static_cast<size_t>(node.integer("num_scan_inputs"));
  const auto all = static_cast<size_t>(node.input_count());
  if (scanned > all || body.inputs.size() != all) node.fail("has a body for another number of inputs");
  const size_t carried = all - scanned, gathers = body.outputs.size() - carried;
  const auto directions = node.integers("scan_input_directions", std::vector<int64_t>(scanned, 0));
  const auto axes = node.integers("scan_input_axes", std::vector<int64_t>(scanned, 0));
  const auto output_directions = node.integers("scan_output_directions", std::vector<int64_t>(gathers, 0));
  const auto output_axes = node.integers("scan_output_axes", std::vector<int64_t>(gathers, 0));
  const auto axis_of = [&](size_t index) {
    const Tensor& tensor = node.tensor(static_cast<int>(carried + index));
    return static_cast<int>(axes[index] < 0 ? axes[index] + tensor.shape().rank() : axes[index]);
  };
  int64_t turns = 0;
  for (size_t index = 0; index < scanned; ++index) {
    const Shape& shape = node.tensor(static_cast<int>(carried + index)).shape();
    if (axis_of(index) < 0 || axis_of(index) >= shape.rank()) node.fail("scans along an axis that its operand has not");
    const int64_t size = shape[axis_of(index)];
    if (index > 0 && size != turns) node.fail("scans operands of different lengths");
    turns = size;
  }
  std::vector<HostValue> state;
  for (size_t index = 0; index < carried; ++index) state.push_back(node.input(static_cast<int>(index)));
  std::vector<std::vector<Tensor>> gathered(gathers);
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::vector<HostValue> inputs = state;
    for (size_t index = 0; index < scanned; ++index) {
      const int64_t at = directions[index] == 0 ? turn : turns - 1 - turn;
      inputs.emplace_back(layer_of(node.tensor(static_cast<int>(carried + index)), axis_of(index), at));
    }
    const auto results = node.run(body, inputs);
    for (size_t index = 0; index < carried; ++index) state[index] = results[index];
    for (size_t index = 0; index < gathers; ++index) {
      const Tensor* part = results[carried + index].tensor();
      if (part == nullptr) node.fail("gathers what is no tensor");
      gathered[index].push_back(*part);
    }
  }
  for (size_t index = 0; index < gathers; ++index)
    state.emplace_back(stacked(node, gathered[index], output_axes[index], output_directions[index] != 0,
                               body.outputs[carried + index]));
  return state;
}

}  // namespace

void add_control_flow(OperatorTable& table) {
  const std::string family = "control flow";
  table.add_on_host(family, "If", run_if);
  table.add_on_host(family, "Loop", run_loop);
  table.add_on_host(family, "Scan", run_scan);
}

}  // namespace weft::onnx
