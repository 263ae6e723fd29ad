// From a graph of one training step to something that can run: rewrite, choose kernels, order, place in memory.
#pragma once

#include <string>
#include <vector>

#include "weft/graph/backend.h"
#include "weft/passes/pipeline.h"
#include "weft/plan/plan.h"

namespace weft {

struct CompileOptions {
  passes::PipelineOptions passes = {};
  passes::PrecisionPolicy precision = {};
  int threads = 1;  // of the backend
};

struct CompiledStep {
  Graph graph;  // after all passes; the plan speaks of its nodes and values
  Plan plan;
  std::vector<passes::PassReport> passes;
  double compile_seconds = 0;
};

CompiledStep compile(const Graph& graph, const Backend& backend, const CompileOptions& options);

}  // namespace weft
