// The table of all ops.
#pragma once

#include "weft/graph/op_def.h"

namespace weft::ops {

/// Every op that weft knows, an immutable table. Build it once and keep it alive as long as any Graph made with it.
OpRegistry make_registry();
/// Those that an inference graph can have: no losses, updates, collectives and random numbers. What is linked with it
/// alone holds no more.
OpRegistry make_inference_registry();

// One function per family, each in the file of its name.
void add_conv_ops(OpRegistry&);
void add_matmul_ops(OpRegistry&);
void add_norm_ops(OpRegistry&);
void add_elementwise_ops(OpRegistry&);
void add_fused_ops(OpRegistry&);
void add_reduce_ops(OpRegistry&);
void add_pool_ops(OpRegistry&);
void add_shape_ops(OpRegistry&);
void add_strided_slice_ops(OpRegistry&);
void add_resample_ops(OpRegistry&);
void add_indexing_ops(OpRegistry&);
void add_integer_ops(OpRegistry&);
void add_integer_product_ops(OpRegistry&);
void add_quantized_ops(OpRegistry&);
void add_scatter_ops(OpRegistry&);
void add_top_k_ops(OpRegistry&);
void add_constant_ops(OpRegistry&);
void add_loss_ops(OpRegistry&);
void add_embedding_ops(OpRegistry&);
void add_rnn_ops(OpRegistry&);
void add_ctc_ops(OpRegistry&);
void add_random_ops(OpRegistry&);
void add_attention_ops(OpRegistry&);
void add_cached_attention_ops(OpRegistry&);
void add_update_ops(OpRegistry&);
void add_offload_ops(OpRegistry&);
void add_space_copy_ops(OpRegistry&);
void add_collective_ops(OpRegistry&);
void add_compression_ops(OpRegistry&);

/// The shape rules over symbols of ops that are there.
void add_symbolic_rules(OpRegistry&);

}  // namespace weft::ops
