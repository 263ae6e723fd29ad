// What the loops over the registry share: the ops as test cases, drawn values, one-node graphs, and other sizes derived
// from an example.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/cpu/reference/reference.h"
#include "weft/graph/graph.h"
#include "weft/library/check_op.h"
#include "weft/ops/all.h"
#include "weft/runtime/interpret.h"

namespace weft::registry_tests {

inline const OpRegistry& registry() {
  static const OpRegistry all = ops::make_registry();
  return all;
}

inline std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> all;
  for (const auto& [name, op] : registry().all()) all.push_back(&op);
  return all;
}
inline std::vector<const OpDef*> differentiable_ops() {
  std::vector<const OpDef*> some = all_ops();
  std::erase_if(some, [](const OpDef* op) { return !op->gradient; });
  return some;
}
inline std::string op_name(const ::testing::TestParamInfo<const OpDef*>& info) { return info.param->name; }

inline OpExample::Range range_of(const OpExample& example, size_t input) {
  return input < example.ranges.size() ? example.ranges[input] : OpExample::Range{};
}

/// A graph of the example's one node. Throws what the op's shape rule throws.
struct ExampleGraph {
  Graph graph;
  NodeId node{0};
  std::vector<ValueId> inputs, outputs;

  NodeSignature signature() const { return signature_of(graph, node); }
};
inline std::string input_name(size_t index) { return "input" + std::to_string(index); }
inline ExampleGraph build_graph(const OpDef& op, const std::vector<TensorType>& inputs, const Attributes& attributes) {
  ExampleGraph result{Graph(registry(), op.name), {0}, {}, {}};
  for (size_t i = 0; i < inputs.size(); ++i)
    result.inputs.push_back(result.graph.add_input(InputKind::batch, input_name(i), inputs[i]));
  result.outputs = result.graph.add_node(op.name, result.inputs, attributes, "example");
  return result;
}
inline ExampleGraph build_graph(const OpDef& op, const OpExample& example) {
  return build_graph(op, example.inputs, example.attributes);
}

inline const CpuBackend& reference_backend() {
  static const CpuBackend backend(1, reference_kernels());
  return backend;
}

/// Inputs for a plain signature, drawn from the example's ranges.
inline std::vector<Tensor> draw_inputs(const OpDef& op, const OpExample& example, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < example.inputs.size(); ++i)
    inputs.push_back(draw_tensor(example.inputs[i], range_of(example, i), mix(seed, i)));
  if (op.name == "max_pool2d_backward") {  // its third operand must be what the forward op made of the second
    const auto forward = build_graph(registry().get("max_pool2d"), {example.inputs[1]}, example.attributes);
    inputs[2] = evaluate_node(forward.signature(), {inputs[1]}, reference_backend())[0];
  }
  return inputs;
}

/// The example with some sizes replaced, everywhere alike (so that batches stay batches and channels channels); nullopt
/// where the op's shape rule does not accept it.
inline std::optional<OpExample> resized(const OpDef& op, const OpExample& example,
                                        const std::map<int64_t, int64_t>& sizes) {
  OpExample other = example;
  const auto rename = [&](int64_t& size) { size = sizes.contains(size) ? sizes.at(size) : size; };
  for (TensorType& type : other.inputs)
    for (int axis = 0; axis < type.shape.rank(); ++axis) rename(type.shape[axis]);
  for (const char* name : {"input_size", "shape", "rows", "ends"}) {  // attributes that speak of sizes
    if (!other.attributes.has(name)) continue;
    AttributeValue value = other.attributes.values().at(name);
    if (auto* one = std::get_if<int64_t>(&value)) rename(*one);
    if (auto* list = std::get_if<std::vector<int64_t>>(&value)) std::for_each(list->begin(), list->end(), rename);
    other.attributes.set(name, value);
  }
  // Labels and indices stay below the number of classes or rows.
  for (size_t i = 0; i < other.ranges.size() && i < other.inputs.size(); ++i) {
    auto high = static_cast<int64_t>(other.ranges[i].high);
    if (is_floating(other.inputs[i].dtype)) continue;
    rename(high);
    other.ranges[i].high = static_cast<double>(high);
  }
  try {
    build_graph(op, other);
  } catch (const Error&) {
    return std::nullopt;  // not a call of this op
  }
  return other;
}

/// The dimensions that occur in an example, each once.
inline std::vector<int64_t> sizes_of(const OpExample& example) {
  std::vector<int64_t> sizes;
  for (const TensorType& type : example.inputs)
    for (const int64_t dim : type.shape)
      if (!std::count(sizes.begin(), sizes.end(), dim)) sizes.push_back(dim);
  return sizes;
}

/// Examples of other sizes: some of the dimensions take other values.
inline std::vector<OpExample> derive_examples(const OpDef& op, const OpExample& example, uint64_t seed, size_t wanted) {
  std::vector<OpExample> derived;
  RandomStream stream(seed);
  const std::vector<int64_t> sizes = sizes_of(example);
  constexpr int64_t kFavourites[] = {1, 3, 7, 8, 15, 16, 17, 24, 31, 32, 33, 40};  // around the vectors and blocks
  for (int attempt = 0; attempt < 40 && derived.size() < wanted && !sizes.empty(); ++attempt) {
    std::map<int64_t, int64_t> renamed;
    for (const int64_t size : sizes) renamed[size] = stream.below(2) ? size : kFavourites[stream.below(12)];
    auto other = resized(op, example, renamed);
    if (!other || other->inputs == example.inputs) continue;
    other->label += ", resized";
    derived.push_back(*std::move(other));
  }
  return derived;
}

inline double element(const Tensor& tensor, int64_t index) {
  return reference::load_element(tensor.dtype(), tensor.data(), index);
}

inline bool all_finite(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors)
    for (int64_t i = 0; i < tensor.elements(); ++i)
      if (!std::isfinite(element(tensor, i))) return false;
  return true;
}

}  // namespace weft::registry_tests
