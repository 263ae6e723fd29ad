#include "weft/runtime/native/native.h"

#include <fmt/format.h>

namespace weft {

namespace native {

void add_kernels(KernelTable& table, Isa isa) {
  add_batch_norm(table, isa);
  add_batch_norm_backward(table, isa);
  add_elementwise(table, isa);
  add_update(table, isa);
  add_pool(table, isa);
  add_reduce(table, isa);
  add_softmax(table, isa);
  add_losses(table, isa);
  add_layer_norm(table, isa);
  add_embedding(table, isa);
  add_dropout(table, isa);
  add_copies(table, isa);
}

bool all_plain_f32(const NodeSignature& node, std::string& why_not) {
  const auto fits = [&](const std::vector<TensorType>& types, const char* what) {
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i].dtype == DType::f32 && types[i].layout.is_plain()) continue;
      why_not = fmt::format("{} {} is {}, not plain f32", what, i, to_string(types[i]));
      return false;
    }
    return true;
  };
  return fits(node.inputs, "input") && fits(node.outputs, "output");
}

}  // namespace native

void add_native_kernels(KernelTable& table) { native::add_kernels(table, native::detect_isa()); }

}  // namespace weft
