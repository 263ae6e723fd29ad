#include "weft/ops/all.h"

namespace weft::ops {

namespace {

void add_forward_ops(OpRegistry& registry) {
  add_conv_ops(registry);
  add_matmul_ops(registry);
  add_norm_ops(registry);
  add_elementwise_ops(registry);
  add_fused_ops(registry);
  add_reduce_ops(registry);
  add_pool_ops(registry);
  add_shape_ops(registry);
  add_strided_slice_ops(registry);
  add_resample_ops(registry);
  add_indexing_ops(registry);
  add_integer_ops(registry);
  add_integer_product_ops(registry);
  add_quantized_ops(registry);
  add_scatter_ops(registry);
  add_top_k_ops(registry);
  add_constant_ops(registry);
  add_embedding_ops(registry);
  add_rnn_ops(registry);
  add_attention_ops(registry);
}

}  // namespace

OpRegistry make_inference_registry() {
  OpRegistry registry;
  add_forward_ops(registry);
  add_symbolic_rules(registry);
  return registry;
}

OpRegistry make_registry() {
  OpRegistry registry;
  add_forward_ops(registry);
  add_loss_ops(registry);
  add_ctc_ops(registry);
  add_random_ops(registry);
  add_cached_attention_ops(registry);
  add_update_ops(registry);
  add_offload_ops(registry);
  add_space_copy_ops(registry);
  add_collective_ops(registry);
  add_compression_ops(registry);
  add_symbolic_rules(registry);
  return registry;
}

}  // namespace weft::ops
