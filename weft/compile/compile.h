// From a graph of one training step to something that can run: rewrite, choose kernels, order, place in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/device/backend.h"
#include "weft/passes/pipeline.h"
#include "weft/plan/plan.h"

namespace weft {

struct CompileOptions {
  passes::PipelineOptions passes = {};
  passes::PrecisionPolicy precision = {};
  bool grants_workspace = true;   // see PassContext: kernels that are faster with it, and round otherwise
  bool gathers_rows = true;       // likewise: several ranks, in place of reducing gradients
  int threads = 1;                // of the backend
  int64_t arena_limit_bytes = 0;  // 0: none; otherwise activations are computed again where it is exceeded
  /// Of a file, each way: where recomputation is not enough activations lie there. 0: there is none.
  double offload_bytes_per_second = 0;
  passes::Ranks ranks = {};
  std::shared_ptr<const CostModel> costs = rated_costs();
};

/// What is computed a second time or kept in a file to save memory; predictions are those of the cost model.
struct RecomputeReport {
  int64_t nodes = 0, flops = 0;  // that run again
  int64_t all_flops = 0;         // of the step, these included
  double seconds = 0;            // predicted, of what runs again
  double all_seconds = 0;        // predicted, of the step, these and the file's included
  int64_t offloaded = 0;         // values that go to the file
  int64_t offloaded_bytes = 0;   // of all of them: written and read once in each step
  double offload_seconds = 0;    // predicted, of copying them and waiting for the disk (device/offload_timeline.h)
  double offload_waiting_seconds = 0;  // predicted, of that waiting alone
  double own_seconds() const { return all_seconds - seconds - offload_seconds; }
};

struct CompiledStep {
  Graph graph;  // after all passes; the plan speaks of its nodes and values
  Plan plan;
  std::vector<passes::PassReport> passes;
  double compile_seconds = 0;
  RecomputeReport recompute = {};
};

CompiledStep compile(const Graph& graph, const Backend& backend, const CompileOptions& options);
/// The same of a graph without gradients, updates and ranks, by the passes that such a one has use for
/// (passes/inference_pipeline.h). Limits and ranks are left out of account, and nothing is recomputed.
CompiledStep compile_inference(const Graph& graph, const Backend& backend, const CompileOptions& options);

/// What the passes are told about the machine and the limit, by compile() and by whoever runs passes alone. Refers to
/// the backend.
passes::PassContext pass_context(const Backend& backend, const CompileOptions& options);

}  // namespace weft
