// The table of all graph rewrites, in the order in which they run, and the runner that times, dumps and verifies them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

struct Pass {
  std::string name;     // "fold_constants"
  std::string summary;  // one sentence for `weft graph --list-passes`
  std::function<Graph(const Graph&, const PassContext&)> run;
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

/// Runs the table over the graph and verifies after each pass.
Graph run_pipeline(const Graph& graph, const PassContext& context, const PipelineOptions& options,
                   std::vector<PassReport>* reports = nullptr);

}  // namespace weft::passes
