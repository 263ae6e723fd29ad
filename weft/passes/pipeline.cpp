#include "weft/passes/pipeline.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/passes/clean/eliminate_common_subexpressions.h"
#include "weft/passes/clean/eliminate_dead_code.h"
#include "weft/passes/clean/fold_constants.h"
#include "weft/passes/clean/fold_tensors.h"
#include "weft/passes/clean/join_pads.h"
#include "weft/passes/fuse/fold_batch_norm.h"
#include "weft/passes/fuse/fuse_attention.h"
#include "weft/passes/fuse/fuse_batch_norm.h"
#include "weft/passes/fuse/fuse_bias.h"
#include "weft/passes/fuse/fuse_elementwise.h"
#include "weft/passes/fuse/fuse_product_updates.h"
#include "weft/passes/fuse/keep_slopes.h"
#include "weft/passes/fuse/pool_before_relu.h"
#include "weft/passes/integer/form_integer_products.h"
#include "weft/passes/integer/fuse_requantize.h"
#include "weft/passes/layout/assign_layouts.h"
#include "weft/passes/layout/copy_between_spaces.h"
#include "weft/passes/layout/mark_winograd.h"
#include "weft/passes/memory/copy_states.h"
#include "weft/passes/memory/mark_in_place.h"
#include "weft/passes/memory/offload.h"
#include "weft/passes/memory/recompute.h"
#include "weft/passes/precision/keep_copies.h"
#include "weft/passes/precision/lower_precision.h"
#include "weft/passes/ranks/late_multiply.h"
#include "weft/passes/ranks/overlap_all_reduces.h"
#include "weft/passes/ranks/overlap_collectives.h"
#include "weft/passes/run_passes.h"

namespace weft::passes {

namespace {

/// For passes that ask nothing of the machine.
std::function<Graph(const Graph&, const PassContext&)> machine_independent(Graph (*pass)(const Graph&)) {
  return [pass](const Graph& graph, const PassContext&) { return pass(graph); };
}

}  // namespace

const std::vector<Pass>& pipeline() {
  static const std::vector<Pass> table = {
      {"eliminate_dead_code", "Removes nodes that no output and no state depends on.",
       machine_independent(eliminate_dead_code)},
      // Before constants are folded: what integers shall multiply must not become reals.
      {"form_integer_products",
       "Computes with integers of 8 bits where quantization says what they mean, with the same rounding.",
       [](const Graph& graph, const PassContext& context) { return form_integer_products(graph, context.backend); }},
      {"fold_constants", "Computes what depends on constants only; removes operations that change nothing.",
       machine_independent(fold_constants)},
      {"eliminate_common_subexpressions", "Computes each expression once.",
       machine_independent(eliminate_common_subexpressions)},
      {"fold_tensors", "Computes what depends on constant tensors only, where it takes no more memory than they do.",
       [](const Graph& graph, const PassContext& context) { return fold_tensors(graph, context.backend); }},
      {"join_pads", "Joins what was padded with zeros only to be added up, as the gradients of a split's parts are.",
       machine_independent(join_pads)},
      // Users of a value decide what can be fused: those that nobody reads must be gone by then.
      {"eliminate_leftovers", "Removes what these have left without users.", machine_independent(eliminate_dead_code)},
      {"pool_before_relu", "Applies a relu after the max pooling that reads it, to fewer numbers.",
       machine_independent(pool_before_relu)},
      {"fuse_requantize", "Lets products of integers write 8 bits while their sums are in registers.",
       machine_independent(fuse_requantize)},
      {"fuse_bias", "Lets convolutions add their bias, and their weights' gradient sum up the bias's.",
       machine_independent(fuse_bias)},
      {"fold_batch_norm", "Folds batch norm by constant statistics into convolutions with constant weights.",
       [](const Graph& graph, const PassContext&) { return eliminate_dead_code(fold_batch_norm(graph)); }},
      {"fuse_attention", "Lets inference compute attention tile by tile, without its scores in memory.",
       [](const Graph& graph, const PassContext& context) {
         return eliminate_dead_code(fuse_attention(graph, context.precision.dtype));
       }},
      {"late_multiply",
       "Gathers the rows of large fully connected layers from the ranks where reducing their gradients costs more.",
       late_multiply},
      {"lower_precision",
       "Lets convolutions, matrix products and what follows them compute in bf16 or f16, where that is asked for.",
       [](const Graph& graph, const PassContext& context) { return lower_precision(graph, context.precision); }},
      {"mark_winograd", "Lets convolutions of 3x3 multiply in Winograd's transformed tiles.", mark_winograd,
       mark_winograd_everywhere},
      {"fuse_batch_norm", "Merges batch norm with the residual addition and the relu or relu6 after it, both ways.",
       machine_independent(fuse_batch_norm)},
      {"keep_slopes",
       "Lets the forward part compute what the gradient of a gelu multiplies with, in place of its operand.",
       machine_independent(keep_slopes)},
      {"fuse_elementwise", "Groups elementwise operations of one shape into single sweeps over memory.",
       machine_independent(fuse_elementwise)},
      {"fuse_product_updates",
       "Lets updates multiply the gradient of fully connected layers of few rows themselves, tile by tile.",
       fuse_product_updates},
      {"assign_layouts", "Gives every value the memory layout its kernels want, with reorders where they disagree.",
       [](const Graph& graph, const PassContext& context) { return assign_layouts(graph, context.backend); }},
      {"fold_casts", "Computes the casts and reorders of constant tensors.",
       [](const Graph& graph, const PassContext& context) { return fold_tensors(graph, context.backend); }},
      {"copy_states", "Copies what must outlive the update of the state in whose memory it lies.",
       machine_independent(copy_states)},
      {"overlap_collectives", "Lets the step compute while rows are gathered from the ranks, scattered or sent around.",
       overlap_collectives},
      {"overlap_all_reduces", "Lets the step compute while gradients are reduced over the ranks, several at a time.",
       overlap_all_reduces},
      // Where exchanges begin and end is decided by then, as on a device without memory of its own.
      {"copy_between_spaces", "Carries batches and scalars to a device that has memory of its own, and outputs back.",
       [](const Graph& graph, const PassContext& context) { return copy_between_spaces(graph, context.backend); }},
      {"recompute", "Computes activations again in the backward part where the memory limit asks for it.", recompute},
      {"offload", "Keeps activations in a file between forward and backward part where recomputation is not enough.",
       offload},
      {"keep_copies", "Keeps narrow copies of weights from step to step, which updates renew.", keep_copies},
      {"mark_in_place",
       "Lets results overwrite operands that die; puts updates last, so that they may overwrite states.",
       machine_independent(mark_in_place)},
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
