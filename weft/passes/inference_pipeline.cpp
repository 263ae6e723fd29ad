#include "weft/passes/inference_pipeline.h"

#include "weft/passes/pipeline_rows.h"

namespace weft::passes {

const std::vector<Pass>& inference_pipeline() {
  // clang-format off
  static const std::vector<Pass> table = {
      rows::eliminate_dead_code(),
      rows::form_integer_products(),
      rows::fold_constants(),
      rows::eliminate_common_subexpressions(),
      rows::fold_tensors(),
      rows::eliminate_leftovers(),
      rows::pool_before_relu(),
      rows::fuse_requantize(),
      rows::join_groups(),
      rows::fuse_bias(),
      rows::fold_batch_norm(),
      rows::fuse_attention(),
      rows::lower_precision(),
      rows::mark_winograd(),
      rows::fuse_batch_norm(),
      rows::fuse_conv_epilogue(),
      rows::fuse_elementwise(),
      rows::assign_layouts(),
      rows::fold_casts(),
      rows::copy_between_spaces(),
      rows::mark_in_place(),
  };
  // clang-format on
  return table;
}

}  // namespace weft::passes
