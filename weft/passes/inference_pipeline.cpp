#include "weft/passes/inference_pipeline.h"

#include "weft/passes/clean/eliminate_common_subexpressions.h"
#include "weft/passes/clean/eliminate_dead_code.h"
#include "weft/passes/clean/fold_constants.h"
#include "weft/passes/clean/fold_tensors.h"
#include "weft/passes/fuse/fold_batch_norm.h"
#include "weft/passes/fuse/fuse_attention.h"
#include "weft/passes/fuse/fuse_batch_norm.h"
#include "weft/passes/fuse/fuse_bias.h"
#include "weft/passes/fuse/fuse_elementwise.h"
#include "weft/passes/fuse/pool_before_relu.h"
#include "weft/passes/layout/assign_layouts.h"
#include "weft/passes/layout/copy_between_spaces.h"
#include "weft/passes/layout/mark_winograd.h"
#include "weft/passes/memory/mark_in_place.h"
#include "weft/passes/precision/lower_precision.h"

namespace weft::passes {

namespace {

std::function<Graph(const Graph&, const PassContext&)> of_graph(Graph (*pass)(const Graph&)) {
  return [pass](const Graph& graph, const PassContext&) { return pass(graph); };
}

}  // namespace

const std::vector<Pass>& inference_pipeline() {
  static const std::vector<Pass> table = {
      {"eliminate_dead_code", "Removes nodes that no output and no state depends on.", of_graph(eliminate_dead_code)},
      {"fold_constants", "Computes what depends on constants only; removes operations that change nothing.",
       of_graph(fold_constants)},
      {"eliminate_common_subexpressions", "Computes each expression once.", of_graph(eliminate_common_subexpressions)},
      {"fold_tensors", "Computes what depends on constant tensors only, where it takes no more memory than they do.",
       [](const Graph& graph, const PassContext& context) { return fold_tensors(graph, context.backend); }},
      {"eliminate_leftovers", "Removes what these have left without users.", of_graph(eliminate_dead_code)},
      {"pool_before_relu", "Applies a relu after the max pooling that reads it, to fewer numbers.",
       of_graph(pool_before_relu)},
      {"fuse_bias", "Lets convolutions add their bias, and their weights' gradient sum up the bias's.",
       of_graph(fuse_bias)},
      {"fold_batch_norm", "Folds batch norm by constant statistics into convolutions with constant weights.",
       [](const Graph& graph, const PassContext&) { return eliminate_dead_code(fold_batch_norm(graph)); }},
      {"fuse_attention", "Lets inference compute attention tile by tile, without its scores in memory.",
       [](const Graph& graph, const PassContext& context) {
         return eliminate_dead_code(fuse_attention(graph, context.precision.dtype));
       }},
      {"lower_precision",
       "Lets convolutions, matrix products and what follows them compute in bf16 or f16, where that is asked for.",
       [](const Graph& graph, const PassContext& context) { return lower_precision(graph, context.precision); }},
      {"mark_winograd", "Lets convolutions of 3x3 multiply in Winograd's transformed tiles.", mark_winograd,
       mark_winograd_everywhere},
      {"fuse_batch_norm", "Merges batch norm with the residual addition and the relu or relu6 after it, both ways.",
       of_graph(fuse_batch_norm)},
      {"fuse_elementwise", "Groups elementwise operations of one shape into single sweeps over memory.",
       of_graph(fuse_elementwise)},
      {"assign_layouts", "Gives every value the memory layout its kernels want, with reorders where they disagree.",
       [](const Graph& graph, const PassContext& context) { return assign_layouts(graph, context.backend); }},
      {"fold_casts", "Computes the casts and reorders of constant tensors.",
       [](const Graph& graph, const PassContext& context) { return fold_tensors(graph, context.backend); }},
      {"copy_between_spaces", "Carries batches and scalars to a device that has memory of its own, and outputs back.",
       [](const Graph& graph, const PassContext& context) { return copy_between_spaces(graph, context.backend); }},
      {"mark_in_place",
       "Lets results overwrite operands that die; puts updates last, so that they may overwrite states.",
       of_graph(mark_in_place)},
  };
  return table;
}

}  // namespace weft::passes
