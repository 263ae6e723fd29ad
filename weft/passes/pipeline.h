// The table of all graph rewrites, in the order in which they run, and the runner that times, dumps and verifies them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

struct Pass {
  std::string name;     // "fold_constants"
  std::string summary;  // one sentence for `weft graph --list-passes`
  std::function<Graph(const Graph&, const PassContext&)> run;
  /// Of a pass that decides by what becomes of the step: a graph for which the runner runs the rest of the table and
  /// plans. The pass finds the answer in PassContext::forecast. nullopt where there is nothing to decide.
  std::function<std::optional<Graph>(const Graph&, const PassContext&)> to_forecast = {};
};

/// All passes in order.
const std::vector<Pass>& pipeline();

struct PassReport {
  std::string pass;
  double seconds = 0;
  size_t nodes_before = 0, nodes_after = 0;
};

struct PipelineOptions {
  std::vector<std::string> disabled;  // names of passes to leave out; Error(usage) with the nearest name if unknown
  std::string stop_after;             // run up to and including this pass; empty: all
  std::function<void(const std::string& pass, const Graph& after)> on_graph;  // for dumps; may be empty
  std::string start_after = {};  // run the passes that come after this one; empty: all
};

/// Whether the table's row of this function is among those that the options leave out.
bool leaves_out(const PipelineOptions& options, Graph (*pass)(const Graph&, const PassContext&));

/// Runs the table over the graph and verifies after each pass.
Graph run_pipeline(const Graph& graph, const PassContext& context, const PipelineOptions& options,
                   std::vector<PassReport>* reports = nullptr);

}  // namespace weft::passes
