#include "weft/cpu/reference/reference.h"

#include "weft/base/error.h"
#include "weft/cpu/reference/compression.h"
#include "weft/cpu/reference/integer.h"
#include "weft/cpu/reference/widen.h"

namespace weft {
namespace reference {
namespace {

KernelFactory factory(Prepare prepare, const OperandRules& rules) {
  auto without_options = [prepare = std::move(prepare)](const NodeSignature& node, const KernelOptions&) {
    return prepare(node);
  };
  return function_kernel("reference", std::move(without_options), rules);
}

}  // namespace

void add_plain(KernelTable& table, const std::string& op, Prepare prepare, Accepts accepts) {
  const bool any_dtype = accepts == Accepts::any_dtype;
  KernelFactory make = factory(std::move(prepare), {.any_floating = any_dtype});
  table.add(op, {"reference", any_dtype ? std::move(make) : with_narrow_types(std::move(make))});
}

void add_numbers(KernelTable& table, const std::string& op, Prepare prepare, Prepare prepare_typed) {
  const KernelFactory narrow = with_narrow_types(factory(std::move(prepare), {}));
  const KernelFactory typed = factory(std::move(prepare_typed), {.any_floating = true});
  table.add(
      op, {"reference", [narrow, typed](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
             return (is_typed(node) ? typed : narrow)(node, options, why_not);
           }});
}

void add_any_layout(KernelTable& table, const std::string& op, Prepare prepare) {
  table.add(op, {"reference", factory(std::move(prepare), {.any_layout = true, .any_floating = true})});
}

void clear_bits_behind(const TensorType& type, void* data) {
  const int64_t used_bits = type.elements() * bits_of(type.dtype) % 8;
  // The elements in that byte stay: the result may lie where an operand does.
  if (used_bits != 0) static_cast<uint8_t*>(data)[type.bytes() - 1] &= static_cast<uint8_t>((1 << used_bits) - 1);
}

StridedView::StridedView(const Shape& shape, std::vector<int64_t> strides, int64_t base)
    : dims_(shape.dims()), strides_(std::move(strides)), base_(base), contiguous_(true) {
  check(dims_.size() == strides_.size(), "a strided view wants one stride per dimension");
  const std::vector<int64_t> row_major = row_major_strides(shape);
  for (size_t axis = 0; axis < dims_.size(); ++axis)
    if (dims_[axis] != 1 && strides_[axis] != row_major[axis]) contiguous_ = false;
}

StridedView broadcast_view(const Shape& from, const Shape& to) {
  const std::vector<int64_t> own = row_major_strides(from);
  std::vector<int64_t> strides(static_cast<size_t>(to.rank()), 0);
  const int missing = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from[axis] != 1) strides[static_cast<size_t>(axis + missing)] = own[static_cast<size_t>(axis)];
  return {to, std::move(strides)};
}

}  // namespace reference

void add_forward_reference_kernels(KernelTable& table) {
  reference::add_conv(table);
  reference::add_matmul(table);
  reference::add_batch_norm(table);
  reference::add_layer_norm(table);
  reference::add_elementwise(table);
  reference::add_reduce(table);
  reference::add_pool(table);
  reference::add_shape(table);
  reference::add_resample(table);
  reference::add_indexing(table);
  reference::add_integer(table);
  reference::add_quantized(table);
  reference::add_scatter(table);
  reference::add_top_k(table);
  reference::add_embedding(table);
  reference::add_rnn(table);
  reference::add_attention(table);
}

void add_reference_kernels(KernelTable& table) {
  add_forward_reference_kernels(table);
  reference::add_loss(table);
  reference::add_ctc(table);
  reference::add_random(table);
  reference::add_cached_attention(table);
  reference::add_update(table);
  reference::add_collective(table);
  reference::add_compression(table);
}

}  // namespace weft
