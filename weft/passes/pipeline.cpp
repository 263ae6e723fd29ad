#include "weft/passes/pipeline.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/passes/clean/join_pads.h"
#include "weft/passes/fuse/fuse_product_updates.h"
#include "weft/passes/fuse/keep_slopes.h"
#include "weft/passes/memory/copy_states.h"
#include "weft/passes/memory/offload.h"
#include "weft/passes/memory/recompute.h"
#include "weft/passes/pipeline_rows.h"
#include "weft/passes/precision/keep_copies.h"
#include "weft/passes/ranks/late_multiply.h"
#include "weft/passes/ranks/overlap_all_reduces.h"
#include "weft/passes/ranks/overlap_collectives.h"
#include "weft/passes/run_passes.h"

namespace weft::passes {

const std::vector<Pass>& pipeline() {
  static const std::vector<Pass> table = {
      rows::eliminate_dead_code(),
      rows::form_integer_products(),
      rows::fold_constants(),
      rows::eliminate_common_subexpressions(),
      rows::fold_tensors(),
      {"join_pads", "Joins what was padded with zeros only to be added up, as the gradients of a split's parts are.",
       machine_independent(join_pads)},
      rows::eliminate_leftovers(),
      rows::pool_before_relu(),
      rows::fuse_requantize(),
      rows::join_groups(),
      rows::fuse_bias(),
      rows::fold_batch_norm(),
      rows::fuse_attention(),
      {"late_multiply",
       "Gathers the rows of large fully connected layers from the ranks where reducing their gradients costs more.",
       late_multiply},
      rows::lower_precision(),
      rows::mark_winograd(),
      rows::fuse_batch_norm(),
      {"keep_slopes",
       "Lets the forward part compute what the gradient of a gelu multiplies with, in place of its operand.",
       machine_independent(keep_slopes)},
      rows::fuse_conv_epilogue(),
      rows::fuse_elementwise(),
      {"fuse_product_updates",
       "Lets updates multiply the gradient of fully connected layers of few rows themselves, tile by tile.",
       fuse_product_updates},
      rows::assign_layouts(),
      rows::fold_casts(),
      {"copy_states", "Copies what must outlive the update of the state in whose memory it lies.",
       machine_independent(copy_states)},
      {"overlap_collectives", "Lets the step compute while rows are gathered from the ranks, scattered or sent around.",
       overlap_collectives},
      {"overlap_all_reduces", "Lets the step compute while gradients are reduced over the ranks, several at a time.",
       overlap_all_reduces},
      // Where exchanges begin and end is decided by then, as on a device without memory of its own.
      rows::copy_between_spaces(),
      {"recompute", "Computes activations again in the backward part where the memory limit asks for it.", recompute},
      {"offload", "Keeps activations in a file between forward and backward part where recomputation is not enough.",
       offload},
      {"keep_copies", "Keeps narrow copies of weights from step to step, which updates renew.", keep_copies},
      rows::mark_in_place(),
  };
  return table;
}

bool leaves_out(const PipelineOptions& options, Graph (*pass)(const Graph&, const PassContext&)) {
  using PassFunction = Graph (*)(const Graph&, const PassContext&);
  for (const Pass& row : pipeline()) {
    const PassFunction* run = row.run.target<PassFunction>();
    if (run == nullptr || *run != pass) continue;
    return std::any_of(options.disabled.begin(), options.disabled.end(),
                       [&](const std::string& name) { return known_name(pipeline(), name) == row.name; });
  }
  fail(ErrorKind::internal, "a pass that the table has not");
}

Graph run_pipeline(const Graph& graph, const PassContext& context, const PipelineOptions& options,
                   std::vector<PassReport>* reports) {
  return run_passes(pipeline(), graph, context, options, reports);
}

}  // namespace weft::passes
