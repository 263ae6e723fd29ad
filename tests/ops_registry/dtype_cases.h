// What the tests of types share: calls of one op by the reference and by the kernel that a run would choose, into
// memory full of garbage.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "tests/ops_registry/example_cases.h"
#include "tests/support/any_dtype.h"

namespace weft::registry_tests {

inline std::vector<DType> dtypes_where(const std::function<bool(DType)>& holds) {
  std::vector<DType> all;
  for (const DType dtype : all_dtypes())
    if (holds(dtype)) all.push_back(dtype);
  return all;
}
inline bool is_number(DType dtype) { return dtype != DType::boolean; }
inline bool is_network_type(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

inline const CpuBackend& chosen_backend() {
  static const CpuBackend backend(2);
  return backend;
}

/// The node's results by a backend's kernel, which finds garbage where it writes.
inline std::vector<Tensor> run_on(const CpuBackend& backend, const NodeSignature& node,
                                  const std::vector<Tensor>& inputs) {
  const auto kernel = backend.make_kernel(node);
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (const Tensor& input : inputs) sources.push_back(input.data());
  std::vector<Tensor> outputs;
  for (const TensorType& type : node.outputs) outputs.emplace_back(type);
  for (Tensor& output : outputs) {
    std::memset(output.data(), 0xa5, static_cast<size_t>(output.bytes()));
    targets.push_back(output.data());
  }
  const auto workspace = allocate_aligned(kernel->workspace_bytes());
  kernel->run({sources, targets, workspace.get()});
  for (const Tensor& output : outputs) EXPECT_TRUE(any_dtype::ends_in_zeros(output)) << kernel->name();
  return outputs;
}

/// Calls check(result) with the first result of both backends.
inline void for_both(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                     const std::function<void(const Tensor&)>& check) {
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  const NodeSignature node = build_graph(op, types, attributes).signature();
  for (const CpuBackend* backend : {&reference_backend(), &chosen_backend()}) {
    SCOPED_TRACE(backend == &chosen_backend() ? "chosen: " + backend->choose_kernel(node).kernel : "reference");
    check(run_on(*backend, node, inputs).front());
  }
}

}  // namespace weft::registry_tests
