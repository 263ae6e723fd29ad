#include "weft/passes/pipeline_rows.h"

#include "weft/passes/clean/eliminate_common_subexpressions.h"
#include "weft/passes/clean/eliminate_dead_code.h"
#include "weft/passes/clean/fold_constants.h"
#include "weft/passes/clean/fold_tensors.h"
#include "weft/passes/fuse/fold_batch_norm.h"
#include "weft/passes/fuse/fuse_attention.h"
#include "weft/passes/fuse/fuse_batch_norm.h"
#include "weft/passes/fuse/fuse_bias.h"
#include "weft/passes/fuse/fuse_conv_epilogue.h"
#include "weft/passes/fuse/fuse_elementwise.h"
#include "weft/passes/fuse/pool_before_relu.h"
#include "weft/passes/integer/form_integer_products.h"
#include "weft/passes/integer/fuse_requantize.h"
#include "weft/passes/integer/join_groups.h"
#include "weft/passes/layout/assign_layouts.h"
#include "weft/passes/layout/copy_between_spaces.h"
#include "weft/passes/layout/mark_winograd.h"
#include "weft/passes/memory/mark_in_place.h"
#include "weft/passes/precision/lower_precision.h"

namespace weft::passes {

std::function<Graph(const Graph&, const PassContext&)> machine_independent(Graph (*pass)(const Graph&)) {
  return [pass](const Graph& graph, const PassContext&) { return pass(graph); };
}

namespace rows {

namespace {

/// For passes that ask the machine, and nothing else of the context.
std::function<Graph(const Graph&, const PassContext&)> for_backend(Graph (*pass)(const Graph&, const Backend&)) {
  return [pass](const Graph& graph, const PassContext& context) { return pass(graph, context.backend); };
}

}  // namespace

Pass eliminate_dead_code() {
  return {"eliminate_dead_code", "Removes nodes that no output and no state depends on.",
          machine_independent(passes::eliminate_dead_code)};
}

// Before constants are folded: what integers shall multiply must not become reals.
Pass form_integer_products() {
  return {"form_integer_products",
          "Computes with integers of 8 bits where quantization says what they mean, with the same rounding.",
          for_backend(passes::form_integer_products)};
}

Pass fold_constants() {
  return {"fold_constants", "Computes what depends on constants only; removes operations that change nothing.",
          machine_independent(passes::fold_constants)};
}

Pass eliminate_common_subexpressions() {
  return {"eliminate_common_subexpressions", "Computes each expression once.",
          machine_independent(passes::eliminate_common_subexpressions)};
}

Pass fold_tensors() {
  return {"fold_tensors", "Computes what depends on constant tensors only, where it takes no more memory than they do.",
          for_backend(passes::fold_tensors)};
}

// Users of a value decide what can be fused: those that nobody reads must be gone by then.
Pass eliminate_leftovers() {
  return {"eliminate_leftovers", "Removes what these have left without users.",
          machine_independent(passes::eliminate_dead_code)};
}

Pass pool_before_relu() {
  return {"pool_before_relu", "Applies a relu after the max pooling that reads it, to fewer numbers.",
          machine_independent(passes::pool_before_relu)};
}

Pass fuse_requantize() {
  return {"fuse_requantize", "Lets products of integers write 8 bits while their sums are in registers.",
          machine_independent(passes::fuse_requantize)};
}

Pass join_groups() {
  return {"join_groups",
          "Joins groups of few channels of convolutions of integers, so that they fill the kernels' blocks.",
          for_backend(passes::join_groups)};
}

Pass fuse_bias() {
  return {"fuse_bias", "Lets convolutions add their bias, and their weights' gradient sum up the bias's.",
          machine_independent(passes::fuse_bias)};
}

Pass fold_batch_norm() {
  return {"fold_batch_norm", "Folds batch norm by constant statistics into convolutions with constant weights.",
          [](const Graph& graph, const PassContext&) {
            return passes::eliminate_dead_code(passes::fold_batch_norm(graph));
          }};
}

Pass fuse_attention() {
  return {"fuse_attention", "Lets inference compute attention tile by tile, without its scores in memory.",
          [](const Graph& graph, const PassContext& context) {
            return passes::eliminate_dead_code(passes::fuse_attention(graph, context.precision.dtype));
          }};
}

Pass lower_precision() {
  return {
      "lower_precision",
      "Lets convolutions, matrix products and what follows them compute in bf16 or f16, where that is asked for.",
      [](const Graph& graph, const PassContext& context) { return passes::lower_precision(graph, context.precision); }};
}

Pass mark_winograd() {
  return {"mark_winograd", "Lets convolutions of 3x3 multiply in Winograd's transformed tiles.", passes::mark_winograd,
          passes::mark_winograd_everywhere};
}

Pass fuse_batch_norm() {
  return {"fuse_batch_norm", "Merges batch norm with the residual addition and the relu or relu6 after it, both ways.",
          machine_independent(passes::fuse_batch_norm)};
}

// After Winograd's algorithm was granted: such convolutions keep their sums to themselves.
Pass fuse_conv_epilogue() {
  return {"fuse_conv_epilogue",
          "Lets convolutions by constant weights add a residual and apply a relu or relu6 while sums are in registers.",
          for_backend(passes::fuse_conv_epilogue)};
}

Pass fuse_elementwise() {
  return {"fuse_elementwise", "Groups elementwise operations of one shape into single sweeps over memory.",
          machine_independent(passes::fuse_elementwise)};
}

Pass assign_layouts() {
  return {"assign_layouts", "Gives every value the memory layout its kernels want, with reorders where they disagree.",
          for_backend(passes::assign_layouts)};
}

Pass fold_casts() {
  return {"fold_casts", "Computes the casts and reorders of constant tensors.", for_backend(passes::fold_tensors)};
}

Pass copy_between_spaces() {
  return {"copy_between_spaces",
          "Carries batches and scalars to a device that has memory of its own, and outputs back.",
          for_backend(passes::copy_between_spaces)};
}

Pass mark_in_place() {
  return {"mark_in_place",
          "Lets results overwrite operands that die; puts updates last, so that they may overwrite states.",
          machine_independent(passes::mark_in_place)};
}

}  // namespace rows

}  // namespace weft::passes
