// Branches and loops whose course only a run gives: the host runs their bodies, each a model of its own. What is known
// beforehand becomes part of the graph (lower/lower.cpp).
#include <algorithm>
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

/// Operands that are cut, a part per turn, and what the turns give.
struct Scanned {
  const HostContext& node;
  const OnnxGraph& body;
  size_t carried, gathers;

  /// Adds what a turn gathers to `gathered`, and gives the state after it.
  std::vector<HostValue> turn(const std::vector<HostValue>& inputs, std::vector<std::vector<Tensor>>& gathered) const {
    auto results = node.run(body, inputs);
    for (size_t index = 0; index < gathers; ++index) {
      const Tensor* part = results[carried + index].tensor();
      if (part == nullptr) node.fail("gathers what is no tensor");
      gathered[index].push_back(*part);
    }
    results.resize(carried);
    return results;
  }
};

/// Version 8: each sample of a batch is scanned along its first axis, as far as its length.
std::vector<HostValue> run_batched_scan(const HostContext& node) {
  const OnnxGraph& body = node.graph_of("body");
  const auto scanned = static_cast<size_t>(node.integer("num_scan_inputs"));
  const auto all = static_cast<size_t>(node.input_count()) - 1;
  if (node.input_count() < 2 || scanned < 1 || scanned > all || body.inputs.size() != all ||
      body.outputs.size() < all - scanned)
    node.fail("has a body for another number of inputs");
  const Scanned scan{node, body, all - scanned, body.outputs.size() - (all - scanned)};
  const auto directions = node.integers("directions", std::vector<int64_t>(scanned, 0));
  if (directions.size() != scanned) node.fail("wants a direction per operand that it scans");
  const auto input = [&](size_t index) -> const Tensor& { return node.tensor(static_cast<int>(index) + 1); };
  const Shape first = input(scan.carried).shape();
  for (size_t index = 0; index < all; ++index) {
    const Shape& shape = input(index).shape();
    const bool is_scanned = index >= scan.carried;
    if (shape.rank() < (is_scanned ? 2 : 1) || shape[0] != first[0] || (is_scanned && shape[1] != first[1]))
      node.fail("scans operands of different batches or lengths");
  }
  const auto lengths =
      node.has(0) ? node.integers_at(0) : std::vector<int64_t>(static_cast<size_t>(first[0]), first[1]);
  if (static_cast<int64_t>(lengths.size()) != first[0]) node.fail("wants a length per sample");
  std::vector<std::vector<Tensor>> states(scan.carried), rows(scan.gathers);
  for (int64_t sample = 0; sample < first[0]; ++sample) {
    const int64_t length = lengths[static_cast<size_t>(sample)];
    if (length < 1 || length > first[1]) node.fail(fmt::format("has a sample of length {} of {}", length, first[1]));
    std::vector<HostValue> state;
    for (size_t index = 0; index < scan.carried; ++index) state.emplace_back(layer_of(input(index), 0, sample));
    std::vector<std::vector<Tensor>> gathered(scan.gathers);
    for (int64_t turn = 0; turn < length; ++turn) {
      std::vector<HostValue> inputs = state;
      for (size_t index = 0; index < scanned; ++index)
        inputs.emplace_back(layer_of(layer_of(input(scan.carried + index), 0, sample), 0,
                                     directions[index] == 0 ? turn : length - 1 - turn));
      state = scan.turn(inputs, gathered);
    }
    for (size_t index = 0; index < scan.carried; ++index) {
      const Tensor* last = state[index].tensor();
      if (last == nullptr) node.fail("carries what is no tensor");
      states[index].push_back(*last);
    }
    for (size_t index = 0; index < scan.gathers; ++index) {
      // Zeros behind a shorter sample.
      Tensor zero(gathered[index][0].dtype(), gathered[index][0].shape());
      std::fill_n(static_cast<std::byte*>(zero.data()), zero.bytes(), std::byte{0});
      gathered[index].resize(static_cast<size_t>(first[1]), zero);
      rows[index].push_back(stacked(node, gathered[index], 0, false, body.outputs[scan.carried + index]));
    }
  }
  std::vector<HostValue> results;
  for (size_t index = 0; index < scan.carried; ++index)
    results.emplace_back(stacked(node, states[index], 0, false, body.outputs[index]));
  for (size_t index = 0; index < scan.gathers; ++index)
    results.emplace_back(stacked(node, rows[index], 0, false, body.outputs[scan.carried + index]));
  return results;
}

std::vector<HostValue> run_scan(const HostContext& node) {
  if (node.opset() < 9) return run_batched_scan(node);
  const OnnxGraph& body = node.graph_of("body");
  const auto scanned = static_cast<size_t>(node.integer("num_scan_inputs"));
  const auto all = static_cast<size_t>(node.input_count());
  if (scanned > all || body.inputs.size() != all) node.fail("has a body for another number of inputs");
  const size_t carried = all - scanned, gathers = body.outputs.size() - carried;
  if (body.outputs.size() < carried) node.fail("has a body that does not give back what it carries");
  const Scanned scan{node, body, carried, gathers};
  const auto directions = node.integers("scan_input_directions", std::vector<int64_t>(scanned, 0));
  const auto axes = node.integers("scan_input_axes", std::vector<int64_t>(scanned, 0));
  const auto output_directions = node.integers("scan_output_directions", std::vector<int64_t>(gathers, 0));
  const auto output_axes = node.integers("scan_output_axes", std::vector<int64_t>(gathers, 0));
  if (directions.size() != scanned || axes.size() != scanned || output_directions.size() != gathers ||
      output_axes.size() != gathers)
    node.fail("wants a direction and an axis per operand that it scans, and per result that it gathers");
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
    state = scan.turn(inputs, gathered);
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
