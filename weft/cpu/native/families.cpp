#include "weft/cpu/native/support/families.h"

#include <fmt/format.h>

#include "weft/cpu/native/update/compression.h"

namespace weft {

namespace native {

namespace {

/// True where every operand is plain and `accepts` it, given its place and whether it is a result; else says which is
/// not as `wanted`.
template <typename Accepts>
bool all_fit(const NodeSignature& node, const char* wanted, std::string& why_not, Accepts&& accepts) {
  const auto fits = [&](const std::vector<TensorType>& types, const char* what) {
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i].layout.is_plain() && accepts(types[i], i, &types == &node.outputs)) continue;
      why_not = fmt::format("{} {} is {}, not {}", what, i, to_string(types[i]), wanted);
      return false;
    }
    return true;
  };
  return fits(node.inputs, "input") && fits(node.outputs, "output");
}

}  // namespace

namespace {

/// What inference and training have alike.
void add_common_kernels(KernelTable& table, Isa isa) {
  add_batch_norm_inference(table, isa);
  add_few_channels_data(table, isa);
  add_winograd(table, isa);
  add_pool(table, isa);
  add_resample(table, isa);
  add_reduce(table, isa);
  add_softmax(table, isa);
  add_argmax(table, isa);
  add_layer_norm(table, isa);
  add_embedding(table, isa);
  add_few_rows(table, isa);
  add_lstm_few_rows(table, isa);
  add_few_positions(table, isa);
  add_fused_attention(table, isa);
  add_copies(table, isa);
  add_transpose(table, isa);
  add_cast(table, isa);
  add_reorder(table, isa);
  add_integer_matmul(table, isa);
  add_integer_convolution(table, isa);
  add_byte_pool(table, isa);
  add_quantize(table, isa);
}

}  // namespace

void add_forward_kernels(KernelTable& table, Isa isa) {
  add_forward_elementwise(table, isa);
  add_common_kernels(table, isa);
}

void add_kernels(KernelTable& table, Isa isa) {
  add_few_channels(table, isa);  // before Winograd's, which serve the same op
  add_elementwise(table, isa);
  add_common_kernels(table, isa);
  add_batch_norm(table, isa);
  add_batch_norm_backward(table, isa);
  add_winograd_weights(table, isa);
  add_softmax_backward(table, isa);
  add_layer_norm_backward(table, isa);
  add_pool_gradients(table, isa);
  add_update(table, isa);
  add_losses(table, isa);
  add_ctc(table, isa);
  add_dropout(table, isa);
  add_cached_attention(table, isa);
  add_compression(table, isa);
}

bool all_plain(const NodeSignature& node, std::string& why_not) {
  return all_fit(node, "plain", why_not, [](const TensorType&, size_t, bool) { return true; });
}

bool all_plain_f32(const NodeSignature& node, std::string& why_not) { return plain_images(node, 0, 0, why_not); }

bool plain_images(const NodeSignature& node, size_t inputs, size_t outputs, std::string& why_not) {
  const DType images = inputs + outputs > 0 && node.inputs[0].dtype == DType::bf16 ? DType::bf16 : DType::f32;
  return all_fit(node, images == DType::bf16 ? "plain bf16 as it should be, or f32" : "plain f32", why_not,
                 [&](const TensorType& type, size_t place, bool is_result) {
                   return type.dtype == (place < (is_result ? outputs : inputs) ? images : DType::f32);
                 });
}

bool logits_and_labels(const NodeSignature& node, std::string& why_not) {
  NodeSignature floats = node;
  floats.inputs.pop_back();
  if (!all_plain_f32(floats, why_not)) return false;
  const TensorType& labels = node.inputs.back();
  const Shape& logits = node.inputs[node.inputs.size() - 2].shape;
  if (labels.dtype == DType::i32 && labels.layout.is_plain() && logits.rank() == 2 && logits[1] > 0) return true;
  why_not = fmt::format("logits {} with labels {}", to_string(logits), to_string(labels));
  return false;
}

}  // namespace native

void add_native_kernels(KernelTable& table) { native::add_kernels(table, detect_isa()); }

}  // namespace weft
