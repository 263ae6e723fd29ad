// What the tests of the oneDNN kernels share: node signatures made by hand, and calls of kernels on whole tensors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/rng.h"
#include "weft/device/kernel.h"

namespace weft::testing_support {

inline Tensor random_tensor(const Shape& shape, uint64_t key) {
  Tensor tensor(DType::f32, shape);
  RandomStream random(key);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data_as<float>()[i] = random.uniform() * 2 - 1;
  return tensor;
}

/// A signature that owns its op.
struct OwnedSignature {
  std::unique_ptr<OpDef> op = std::make_unique<OpDef>();
  NodeSignature node;
};
inline OwnedSignature make_signature(const std::string& op, std::vector<TensorType> inputs, TensorType output,
                                     const Attributes& attributes = {}) {
  OwnedSignature owned;
  owned.op->name = op;
  owned.node = {owned.op.get(), "node", std::move(inputs), {std::move(output)}, attributes};
  return owned;
}

inline std::unique_ptr<Kernel> make_onednn_kernel(const NodeSignature& node, int threads = 2,
                                                  std::string* why_not = nullptr) {
  KernelTable table;
  add_onednn_kernels(table);
  std::string reason;
  std::unique_ptr<Kernel> kernel;
  for (const KernelCandidate& candidate : table.candidates(node.op->name))
    if (kernel == nullptr) kernel = candidate.make(node, {.threads = threads}, reason);
  if (why_not != nullptr) *why_not = reason;
  return kernel;
}

/// Runs on plain tensors: they are brought to the signature's layouts and the result back. The output's memory and the
/// workspace start out as NaN, so that anything left unwritten shows.
inline Tensor run_onednn_kernel(Kernel& kernel, const NodeSignature& node, const std::vector<Tensor>& plain_inputs) {
  std::vector<Tensor> inputs;
  std::vector<const void*> pointers;
  for (size_t i = 0; i < plain_inputs.size(); ++i) {
    inputs.push_back(plain_inputs[i].with_layout(node.inputs[i].layout));
    pointers.push_back(inputs.back().data());
  }
  Tensor output(node.outputs[0]);
  std::fill_n(output.data_as<float>(), output.bytes() / 4, NAN);
  auto workspace = allocate_aligned(kernel.workspace_bytes());
  std::fill_n(reinterpret_cast<float*>(workspace.get()), kernel.workspace_bytes() / 4, NAN);
  void* outputs[] = {output.data()};
  kernel.run({pointers, outputs, workspace.get()});
  return output.with_layout({});
}

/// Largest difference relative to the largest expected value.
inline double relative_error(const Tensor& actual, const Tensor& expected) {
  double worst = 0, largest = 1e-30;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = actual.data_as<float>()[i], e = expected.data_as<float>()[i];
    worst = std::isnan(a) ? INFINITY : std::max(worst, std::abs(a - e));
    largest = std::max(largest, std::abs(e));
  }
  return worst / largest;
}

}  // namespace weft::testing_support
