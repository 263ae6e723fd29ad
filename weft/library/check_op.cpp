#include "weft/library/check_op.h"

#include <algorithm>
#include <cmath>

#include "weft/autodiff/autodiff.h"
#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/runtime/interpret.h"
#include "weft/tensor/element.h"

namespace weft {

namespace {

OpExample::Range range_of(const OpExample& example, size_t input) {
  return input < example.ranges.size() ? example.ranges[input] : OpExample::Range{};
}

double element(const Tensor& tensor, int64_t index) { return load_element(tensor.dtype(), tensor.data(), index); }

/// A graph of the example's one node. Throws what the op's shape rule throws.
struct ExampleGraph {
  ExampleGraph(const OpRegistry& registry, const OpDef& op, const OpExample& example) : graph(registry, op.name) {
    for (size_t i = 0; i < example.inputs.size(); ++i)
      inputs.push_back(graph.add_input(InputKind::batch, "input" + std::to_string(i), example.inputs[i]));
    outputs = graph.add_node(op.name, inputs, example.attributes, "example");
  }
  Graph graph;
  std::vector<ValueId> inputs, outputs;
};

double weighted_sum(const Tensor& values, const Tensor& weights) {
  double sum = 0;
  for (int64_t i = 0; i < values.elements(); ++i) sum += element(values, i) * element(weights, i);
  return sum;
}

/// Half the distance of the two points of a difference: small against the range, large against f32's rounding; where
/// values are spread because the function has kinks between them, a part of their distance.
double step_for(const OpExample::Range& range, int64_t elements) {
  const double width = range.high - range.low;
  const double smooth = 5e-3 * width;
  return range.spread ? std::min(smooth, width / static_cast<double>(elements) / 4) : smooth;
}

Tensor numeric_gradient(Kernel& kernel, const NodeSignature& node, std::vector<Tensor> inputs, size_t input,
                        size_t output, const Tensor& weights, double step) {
  inputs[input] = inputs[input].clone();
  Tensor gradient(DType::f32, inputs[input].shape());
  float* values = inputs[input].data_as<float>();
  for (int64_t i = 0; i < gradient.elements(); ++i) {
    const float middle = values[i];
    const float above = middle + static_cast<float>(step), below = middle - static_cast<float>(step);
    values[i] = above;
    const double high = weighted_sum(run_kernel(kernel, node, inputs)[output], weights);
    values[i] = below;
    const double low = weighted_sum(run_kernel(kernel, node, inputs)[output], weights);
    values[i] = middle;
    gradient.data_as<float>()[i] =
        static_cast<float>((high - low) / (static_cast<double>(above) - static_cast<double>(below)));
  }
  return gradient;
}

/// Which inputs the rule gives a gradient for, when only `output` matters.
std::vector<bool> gradient_exists(const ExampleGraph& built, size_t output, ValueId output_gradient) {
  Graph scratch = built.graph;
  GradContext context{scratch, {0}, built.inputs, built.outputs, std::vector<ValueId>(built.outputs.size())};
  context.output_gradients[output] = output_gradient;
  std::vector<bool> exists;
  for (const ValueId id : built.graph.node({0}).op->gradient(context)) exists.push_back(id.valid());
  return exists;
}

/// The last resort of every op: what faster kernels are compared with.
KernelTable last_resorts(const Library& library) {
  KernelTable table;
  for (const auto& [name, op] : library.ops.all()) {
    const auto& candidates = library.kernels.candidates(name);
    if (!candidates.empty() && candidates.back().family == "reference") table.add(name, candidates.back());
  }
  return table;
}

std::vector<std::string> check_kernels(const Library& library, const Device& reference, const NodeSignature& node,
                                       const std::vector<Tensor>& inputs) {
  std::vector<std::string> problems;
  const std::vector<Tensor> expected = evaluate_node(node, inputs, reference);
  for (const KernelCandidate& candidate : library.kernels.candidates(node.op->name)) {
    std::string why_not;
    const std::unique_ptr<Kernel> kernel = candidate.make(node, {.threads = 2}, why_not);
    if (kernel == nullptr) continue;
    const std::vector<Tensor> actual = run_kernel(*kernel, node, inputs);
    for (size_t output = 0; output < expected.size(); ++output) {
      const std::string problem = difference(actual[output], expected[output], node.op->kernel_tolerance, 1e-3);
      if (!problem.empty())
        problems.push_back(fmt::format("output {} of kernel '{}': {}", output, kernel->name(), problem));
    }
  }
  return problems;
}

}  // namespace

Tensor draw_tensor(const TensorType& type, const OpExample::Range& range, uint64_t key) {
  Tensor tensor(TensorType{type.dtype, type.shape, {}});
  RandomStream stream(key);
  const int64_t count = tensor.elements();
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const double unit = range.spread ? (static_cast<double>(i) + 0.5) / static_cast<double>(count)
                                     : static_cast<double>(stream.uniform());
    const double value = range.low + unit * (range.high - range.low);
    values.push_back(is_floating(type.dtype) ? value : std::floor(value));
  }
  for (size_t i = values.size(); range.spread && i > 1; --i)
    std::swap(values[i - 1], values[stream.below(static_cast<uint32_t>(i))]);
  for (int64_t i = 0; i < count; ++i) store_element(type.dtype, tensor.data(), i, values[static_cast<size_t>(i)]);
  return tensor;
}

std::string difference(const Tensor& actual, const Tensor& expected, double tolerance, double smallest_scale) {
  if (actual.type() != expected.type())
    return fmt::format("got {}, wanted {}", to_string(actual.type()), to_string(expected.type()));
  double scale = smallest_scale, worst = 0;
  int64_t where = -1;
  for (int64_t i = 0; i < expected.elements(); ++i) scale = std::max(scale, std::fabs(element(expected, i)));
  if (!is_floating(expected.dtype())) tolerance = 0;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double gap = std::fabs(element(actual, i) - element(expected, i));
    if (!(gap <= tolerance * scale) && !(gap <= worst)) {  // NaN counts as a difference
      worst = gap;
      where = i;
    }
  }
  if (where < 0) return "";
  return fmt::format("element {} of {}: got {}, wanted {}; the largest magnitude is {}, the tolerance {}", where,
                     to_string(expected.type()), element(actual, where), element(expected, where), scale, tolerance);
}

GradientCheck check_gradient(const OpRegistry& registry, const Device& reference, const OpDef& op,
                             const OpExample& example, const std::vector<Tensor>& inputs, size_t output) {
  ExampleGraph built(registry, op, example);
  const NodeSignature node = signature_of(built.graph, {0});
  const TensorType result = node.outputs[output];
  const ValueId weight_value = built.graph.add_input(InputKind::batch, "weights", result);
  GradientCheck check;
  std::vector<bool> exists;
  std::vector<size_t> floating;
  std::vector<ValueId> targets;
  try {
    exists = gradient_exists(built, output, weight_value);
    for (size_t i = 0; i < built.inputs.size(); ++i)
      if (is_floating(node.inputs[i].dtype)) {
        floating.push_back(i);
        targets.push_back(built.inputs[i]);
      }
    const ValueId weighted = built.graph.add("multiply", {built.outputs[output], weight_value});
    const ValueId loss = built.graph.add("reduce_sum", {weighted});
    const std::vector<ValueId> gradients = add_gradients(built.graph, loss, targets);
    for (size_t k = 0; k < gradients.size(); ++k)
      built.graph.add_output("gradient" + std::to_string(floating[k]), gradients[k]);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    check.differentiated = false;
    check.problems = {error.what()};
    return check;
  }

  const Tensor weights = draw_tensor(result, {}, 11);
  std::map<std::string, Tensor> feed{{"weights", weights}};
  for (size_t i = 0; i < inputs.size(); ++i) feed["input" + std::to_string(i)] = inputs[i];
  const auto computed = evaluate_graph(built.graph, feed, reference);
  const auto kernel = reference.make_kernel(node);
  for (const size_t i : floating) {
    const double step = step_for(range_of(example, i), inputs[i].elements());
    const Tensor numeric = numeric_gradient(*kernel, node, inputs, i, output, weights, step);
    const std::string problem =
        difference(computed.at("gradient" + std::to_string(i)), numeric, op.gradient_tolerance, 1e-2);
    if (problem.empty()) continue;
    // A rule may leave out a gradient only where it is zero.
    check.problems.push_back(fmt::format("gradient of input {}{}: {} (by finite differences)", i,
                                         exists[i] ? "" : ", which the rule leaves out", problem));
  }
  return check;
}

void check_op(const Library& library, const std::string& name) {
  const OpDef& op = library.ops.get(name);
  if (op.examples.empty())
    fail(ErrorKind::usage, "[{}] has no examples to be checked on; give OpDef::examples at least one", name);
  const std::unique_ptr<Device> device = library.device.make({.threads = 1, .kernels = last_resorts(library)});
  const Device& reference = *device;
  for (const OpExample& example : op.examples) {
    const NodeSignature node = signature_of(ExampleGraph(library.ops, op, example).graph, {0});
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < example.inputs.size(); ++i)
      inputs.push_back(draw_tensor(example.inputs[i], range_of(example, i), mix(7, i)));
    std::vector<std::string> problems = check_kernels(library, reference, node, inputs);
    for (size_t output = 0; op.gradient && output < node.outputs.size(); ++output) {
      if (!is_floating(node.outputs[output].dtype)) continue;
      const GradientCheck gradient = check_gradient(library.ops, reference, op, example, inputs, output);
      if (!gradient.differentiated && output > 0) continue;  // by-products may be refused
      for (const std::string& problem : gradient.problems)
        problems.push_back(fmt::format("output {}, {}", output, problem));
    }
    if (!problems.empty()) fail(ErrorKind::numeric, "[{}] example '{}': {}", name, example.label, problems.front());
  }
}

}  // namespace weft
