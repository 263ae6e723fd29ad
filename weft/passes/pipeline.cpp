#include "weft/passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/graph/verify.h"
#include "weft/passes/clean/eliminate_common_subexpressions.h"
#include "weft/passes/clean/eliminate_dead_code.h"
#include "weft/passes/clean/fold_constants.h"
#include "weft/passes/clean/fold_tensors.h"
#include "weft/passes/clean/join_pads.h"
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

namespace weft::passes {

namespace {

/// For passes that ask nothing of the machine.
std::function<Graph(const Graph&, const PassContext&)> machine_independent(Graph (*pass)(const Graph&)) {
  return [pass](const Graph& graph, const PassContext&) { return pass(graph); };
}

/// What a user calls it: by its name, or one that it had before.
std::string known_name(const std::string& name) {
  if (name == "filter_by_tiles") return "mark_winograd";
  if (name == "overlap_all_gathers") return "overlap_collectives";
  std::vector<std::string> names;
  for (const Pass& pass : pipeline()) names.push_back(pass.name);
  if (std::find(names.begin(), names.end(), name) == names.end())
    fail(ErrorKind::usage, "there is no pass '{}'{}", name, suggestion(name, names));
  return name;
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
                       [&](const std::string& name) { return known_name(name) == row.name; });
  }
  fail(ErrorKind::internal, "a pass that the table has not");
}

namespace {

/// What planning makes of the graph that the pass would see planned, once the passes after it have run, without a
/// limit.
std::optional<PlannedMemory> forecast(const Pass& pass, const Graph& graph, const PassContext& context,
                                      const std::vector<std::string>& disabled) {
  if (!pass.to_forecast || !context.plan_memory) return std::nullopt;
  const std::optional<Graph> asked = pass.to_forecast(graph, context);
  if (!asked) return std::nullopt;
  PassContext unlimited = context;
  unlimited.plan_memory = {};
  unlimited.arena_limit_bytes = 0;
  unlimited.offload_bytes_per_second = 0;
  const PipelineOptions rest = {.disabled = disabled, .stop_after = {}, .on_graph = {}, .start_after = pass.name};
  return context.plan_memory(run_pipeline(*asked, unlimited, rest));
}

}  // namespace

Graph run_pipeline(const Graph& graph, const PassContext& context, const PipelineOptions& options,
                   std::vector<PassReport>* reports) {
  std::vector<std::string> disabled;
  for (const std::string& name : options.disabled) disabled.push_back(known_name(name));
  const std::string start_after = options.start_after.empty() ? "" : known_name(options.start_after);
  const std::string stop_after = options.stop_after.empty() ? "" : known_name(options.stop_after);
  Graph current = graph;
  bool has_started = start_after.empty();
  for (const Pass& pass : pipeline()) {
    if (!has_started) {
      has_started = pass.name == start_after;
      continue;
    }
    if (std::find(disabled.begin(), disabled.end(), pass.name) == disabled.end()) {
      const size_t nodes_before = current.nodes().size();
      const auto begin = std::chrono::steady_clock::now();
      PassContext own = context;
      own.forecast = forecast(pass, current, context, disabled);
      current = pass.run(current, own);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      verify(current, pass.name);
      if (reports != nullptr) reports->push_back({pass.name, seconds.count(), nodes_before, current.nodes().size()});
      if (options.on_graph) options.on_graph(pass.name, current);
    }
    if (pass.name == stop_after) break;
  }
  return current;
}

}  // namespace weft::passes
