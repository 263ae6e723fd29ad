#include "weft/compile/compile.h"

#include <chrono>

#include "weft/graph/verify.h"
#include "weft/plan/make_plan.h"

namespace weft {

CompiledStep compile(const Graph& graph, const Backend& backend, const CompileOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  verify(graph, "building the graph");
  std::vector<passes::PassReport> reports;
  Graph rewritten = passes::run_pipeline(graph, {backend, options.precision}, options.passes, &reports);
  Plan plan = make_plan(rewritten, backend, options.threads);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return {std::move(rewritten), std::move(plan), std::move(reports), seconds.count()};
}

}  // namespace weft
