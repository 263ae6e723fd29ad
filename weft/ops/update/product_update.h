// The update of a matrix whose gradient is a product over the rows of a batch, made by passes/fuse_product_updates.
#pragma once

#include "weft/graph/op_def.h"

namespace weft::ops {

/// product_sgd_update(parameter[n,m], left[k,n], right[k,m], velocity[n,m], learning_rate[], apply?[]) with the
/// attributes of sgd_update -> (parameter', velocity'), as sgd_update with the gradient left^T right. `left` and
/// `right` may be narrower than f32; their product is not rounded to their type.
inline constexpr const char* kProductSgdUpdate = "product_sgd_update";

void add_product_update_op(OpRegistry&);

}  // namespace weft::ops
