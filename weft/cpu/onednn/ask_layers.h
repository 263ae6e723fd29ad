// Asks oneDNN for normalisation and pooling, in either of its versions.
#pragma once

#include <array>
#include <memory>

#include "weft/cpu/onednn/primitive_desc.h"

namespace weft::onednn {

// Scale and shift are operands of their own. A backward descriptor gives the gradients of input, scale and shift from
// given statistics. Each is empty where oneDNN has no implementation; `data` is the input and the output.

/// `pass`: dnnl_forward_training computes the statistics; dnnl_forward_inference is given them.
PrimitiveDesc ask_batch_norm(const Engine& engine, dnnl_prop_kind_t pass, const MemoryDesc& data, double epsilon);
PrimitiveDesc ask_batch_norm_backward(const Engine& engine, const MemoryDesc& data, double epsilon);

/// Over the last dimension; `statistics` has the others. The statistics are mean and variance.
PrimitiveDesc ask_layer_norm(const Engine& engine, const MemoryDesc& data, const MemoryDesc& statistics,
                             double epsilon);
PrimitiveDesc ask_layer_norm_backward(const Engine& engine, const MemoryDesc& data, const MemoryDesc& statistics,
                                      double epsilon);

/// Input and output stand for their gradients in the backward pass.
struct PoolingQuery {
  dnnl_alg_kind_t algorithm;  // dnnl_pooling_*
  MemoryDesc input, output;
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0};
};
PrimitiveDesc ask_pooling(const Engine& engine, const PoolingQuery& query);
PrimitiveDesc ask_pooling_backward(const Engine& engine, const PoolingQuery& query,
                                   std::shared_ptr<const PrimitiveDesc> forward);

}  // namespace weft::onednn
