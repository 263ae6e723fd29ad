// What the tests of native kernels share: runs a node on every instruction set that this CPU has, with one thread and
// with several, and compares each with the reference kernel on plain layouts.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "weft/base/rng.h"
#include "weft/cpu/native/support/families.h"
#include "weft/runtime/interpret.h"
#include "weft/tensor/element.h"

namespace weft::native_test {

inline std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const auto isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (isa <= detect_isa()) isas.push_back(isa);
  return isas;
}

struct Case {
  std::string op;
  std::vector<TensorType> inputs, outputs;  // with the layouts that the native kernel gets
  Attributes attributes;
  double low = -1, high = 1;                          // range of floating inputs
  int64_t integer_bound = 10;                         // all others lie in [0, bound)
  double tolerance = 2e-6;                            // relative to the largest output
  std::function<void(std::vector<Tensor>&)> prepare;  // may change the plain inputs
  std::vector<Isa> isas = available_isas();           // that have the kernel
};

inline TensorType f32(Shape shape, const std::string& layout = "") {
  const int rank = shape.rank();
  return {DType::f32, std::move(shape), parse_layout(layout, rank)};
}
inline TensorType i32(Shape shape) { return {DType::i32, std::move(shape), {}}; }
inline TensorType i64(Shape shape) { return {DType::i64, std::move(shape), {}}; }

inline Tensor random_tensor(const TensorType& type, uint64_t key, double low, double high, int64_t bound) {
  Tensor tensor(TensorType{type.dtype, type.shape, {}});
  RandomStream stream(key);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (type.dtype == DType::f32)
      tensor.data_as<float>()[i] = static_cast<float>(low + (high - low) * static_cast<double>(stream.uniform()));
    else
      store_element(type.dtype, tensor.data(), i, stream.below(static_cast<uint32_t>(bound)));
  }
  return tensor;
}

/// A signature around a definition that carries only the op's name.
struct BareNode {
  explicit BareNode(const Case& c) {
    definition.name = c.op;
    signature = {&definition, "node", c.inputs, c.outputs, c.attributes};
  }
  BareNode(const BareNode&) = delete;
  OpDef definition;
  NodeSignature signature;
};

inline std::unique_ptr<Kernel> make_native(const NodeSignature& node, Isa isa, int threads, std::string& why_not) {
  KernelTable table;
  native::add_kernels(table, isa);
  if (table.candidates(node.op->name).empty()) {
    why_not = "no native kernel of that op";
    return nullptr;
  }
  std::string reasons;
  for (const KernelCandidate& candidate : table.candidates(node.op->name)) {
    if (auto kernel = candidate.make(node, KernelOptions{threads}, why_not)) return kernel;
    reasons += (reasons.empty() ? "" : "; ") + why_not;
  }
  why_not = reasons;
  return nullptr;
}

inline std::vector<Tensor> plain_inputs(const Case& c) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    inputs.push_back(random_tensor(c.inputs[i], 17 + i, c.low, c.high, c.integer_bound));
  if (c.prepare) c.prepare(inputs);
  return inputs;
}

inline std::vector<Tensor> run_reference(const Case& c, const std::vector<Tensor>& inputs) {
  Case plain = c;
  for (auto* types : {&plain.inputs, &plain.outputs})
    for (auto& type : *types) type.layout = {};
  const BareNode node(plain);
  KernelTable table;
  add_reference_kernels(table);
  std::string why_not;
  const auto kernel = table.candidates(c.op).front().make(node.signature, KernelOptions{1}, why_not);
  if (!kernel) ADD_FAILURE() << c.op << ": the reference declined: " << why_not;
  return run_kernel(*kernel, node.signature, inputs);
}

inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what) {
  const Tensor plain = actual.with_layout({});
  ASSERT_EQ(plain.dtype(), expected.dtype()) << what;
  if (plain.dtype() != DType::f32) {
    EXPECT_EQ(std::memcmp(plain.data(), expected.data(), static_cast<size_t>(expected.bytes())), 0) << what;
    return;
  }
  double scale = 1e-30;
  for (int64_t i = 0; i < expected.elements(); ++i)
    if (std::isfinite(expected.data_as<float>()[i]))
      scale = std::max(scale, std::abs(static_cast<double>(expected.data_as<float>()[i])));
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = static_cast<double>(plain.data_as<float>()[i]);
    const double e = static_cast<double>(expected.data_as<float>()[i]);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    ASSERT_LE(std::abs(a - e), tolerance * scale) << what << ", element " << i << ": " << a << " instead of " << e;
  }
}

/// Fails where the padding of a blocked tensor holds anything but zeros.
inline void expect_zero_padding(const Tensor& tensor, const std::string& what) {
  if (tensor.bytes() == byte_size(tensor.dtype(), tensor.elements())) return;
  const Tensor again = tensor.with_layout({}).with_layout(tensor.layout());
  const int64_t stored = tensor.bytes() / unpacked_size(tensor.dtype());
  for (int64_t i = 0; i < stored; ++i) {
    const double kept = load_element(tensor.dtype(), again.data(), i);
    const double found = load_element(tensor.dtype(), tensor.data(), i);
    if (kept == 0 && found != 0) FAIL() << what << ": padding holds " << found << " at " << i;
  }
}

using Compare = std::function<void(const Tensor& actual, const Tensor& expected, const std::string& what)>;

/// Runs the native kernel on every instruction set, with one thread and with several.
inline void expect_results(const Case& c, const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected,
                           const Compare& compare) {
  std::vector<Tensor> laid_out;
  for (size_t i = 0; i < inputs.size(); ++i) laid_out.push_back(inputs[i].with_layout(c.inputs[i].layout));
  const BareNode node(c);
  for (const auto isa : c.isas)
    for (const int threads : {1, 3}) {
      std::string what = fmt::format("{} on {} with {} threads:", c.op, name_of(isa), threads);
      for (const auto& type : c.inputs) what += " " + to_string(type);
      std::string why_not;
      const auto kernel = make_native(node.signature, isa, threads, why_not);
      ASSERT_NE(kernel, nullptr) << what << " declined: " << why_not;
      const auto actual = run_kernel(*kernel, node.signature, laid_out);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        const std::string which = what + " -> output " + std::to_string(i);
        compare(actual[i], expected[i], which);
        expect_zero_padding(actual[i], which);
      }
      const auto again = run_kernel(*kernel, node.signature, laid_out);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::memcmp(actual[i].data(), again[i].data(), static_cast<size_t>(actual[i].bytes())), 0)
            << what << ": two runs differ";
    }
}

inline void expect_matches_reference(const Case& c) {
  const std::vector<Tensor> inputs = plain_inputs(c);
  expect_results(c, inputs, run_reference(c, inputs),
                 [&](const Tensor& actual, const Tensor& expected, const auto& what) {
                   expect_close(actual, expected, c.tolerance, what);
                 });
}

inline Tensor converted(const Tensor& tensor, DType dtype) {
  Tensor result(dtype, tensor.shape());
  for (int64_t i = 0; i < tensor.elements(); ++i)
    store_element(dtype, result.data(), i, load_element(tensor.dtype(), tensor.data(), i));
  return result;
}

/// The case with those of its f32 operands in bf16 that `is_image` accepts.
inline Case in_bf16(
    Case c, const std::function<bool(const TensorType&)>& is_image = [](const TensorType&) { return true; }) {
  for (auto* types : {&c.inputs, &c.outputs})
    for (auto& type : *types)
      if (type.dtype == DType::f32 && is_image(type)) type.dtype = DType::bf16;
  return c;
}

/// Against the reference in f32 on the same numbers, its results rounded: no further away than the neighbouring bf16.
inline void expect_matches_rounded_reference(const Case& c) {
  Case wide = c;
  for (auto* types : {&wide.inputs, &wide.outputs})
    for (auto& type : *types)
      if (type.dtype == DType::bf16) type.dtype = DType::f32;
  std::vector<Tensor> inputs = plain_inputs(wide), rounded;
  for (size_t i = 0; i < inputs.size(); ++i) {
    rounded.push_back(converted(inputs[i], c.inputs[i].dtype));
    inputs[i] = converted(rounded[i], wide.inputs[i].dtype);
  }
  const auto compare = [&](const Tensor& actual, const Tensor& expected, const std::string& what) {
    if (actual.dtype() != DType::bf16) return expect_close(actual, expected, c.tolerance, what);
    const Tensor plain = converted(actual.with_layout({}), DType::f32);
    const Tensor nearest = converted(converted(expected, DType::bf16), DType::f32);
    double scale = 1e-30;
    for (int64_t i = 0; i < expected.elements(); ++i)
      if (std::isfinite(expected.data_as<float>()[i]))
        scale = std::max(scale, std::abs(static_cast<double>(expected.data_as<float>()[i])));
    for (int64_t i = 0; i < expected.elements(); ++i) {
      const auto a = static_cast<double>(plain.data_as<float>()[i]),
                 e = static_cast<double>(nearest.data_as<float>()[i]);
      if (a == e || (std::isnan(a) && std::isnan(e))) continue;
      ASSERT_LE(std::abs(a - e), std::abs(e) / 128 + c.tolerance * scale)
          << what << ", element " << i << ": " << a << " instead of " << e;
    }
  };
  expect_results(c, rounded, run_reference(wide, inputs), compare);
}

}  // namespace weft::native_test
