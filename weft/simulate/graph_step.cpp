#include "weft/simulate/graph_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/machines/roofline_backend.h"
#include "weft/spec/compile_options.h"
#include "weft/step/data_parallel.h"
#include "weft/step/step.h"

namespace weft::simulate {

passes::Ranks ranks_of(const machines::ClusterFile& cluster, int ranks, int64_t bucket_bytes, double bytes_factor) {
  constexpr double kSmall = 64, kLarge = 64e6;
  if (ranks == 1) return {};
  const GroupShape group = group_of_all(cluster, ranks);
  const double small = cost_of(Collective::all_reduce, kSmall, group, cluster).seconds();
  const double large = cost_of(Collective::all_reduce, bytes_factor * kLarge, group, cluster).seconds();
  return {.count = ranks,
          .latency_seconds = small,
          .bytes_per_second = kLarge / std::max(large - small, 1e-9),
          .bucket_bytes = bucket_bytes};
}

std::string unsimulated_key(const spec::RunSpec& spec) {
  if (spec.strategy != "manual") return "strategy=" + spec.strategy;
  const std::pair<const char*, int64_t> counts[] = {{"mesh.tensor", spec.mesh.tensor > 1 ? spec.mesh.tensor : 0},
                                                    {"mesh.pipeline", spec.mesh.pipeline > 1 ? spec.mesh.pipeline : 0},
                                                    {"averaging.period", spec.averaging.period},
                                                    {"virtual_ranks", spec.virtual_ranks},
                                                    {"balance.grains", spec.balance.grains}};
  for (const auto& [key, value] : counts)
    if (value != 0) return fmt::format("{}={}", key, value);
  if (!spec.memory_limit.empty()) return "memory_limit=" + spec.memory_limit;
  return spec.offload.empty() ? "" : "offload=" + spec.offload;
}

GraphStep compile_for(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input,
                      const machines::ClusterFile& cluster, const GraphStepOptions& options) {
  if (!cluster.device)
    fail(ErrorKind::usage,
         "cluster '{}' names no device, so that nothing says how long nodes take; add machine.device to its file",
         cluster.name);
  const std::shared_ptr<const CostModel> costs = machines::roofline_costs(*cluster.device, options.roofline);
  const machines::RooflineBackend backend(*cluster.device);
  const passes::Ranks ranks = ranks_of(cluster, options.ranks, options.bucket_bytes, options.bytes_factor);
  const step::TrainingStep training =
      step::build_training_step(library, spec, input, {.ranks = options.ranks, .costs = ranks, .nodes = costs});
  CompileOptions compile_options = spec::compile_options(spec, backend);
  compile_options.costs = costs;
  compile_options.ranks = ranks;
  compile_options.ranks.may_defer = options.ranks > 1 && options.defers_updates && step::may_defer_updates(spec);
  compile_options.ranks.batches = step::batches_per_exchange(spec);
  // Workspace is granted to kernels that a device which is not here does not have.
  compile_options.grants_workspace = false;
  compile_options.gathers_rows = compile_options.gathers_rows && options.gathers_rows;
  compile_options.passes.disabled = options.without;
  const CompiledStep compiled = compile(training.graph, backend, compile_options);
  return {.program = step_program(compiled, *costs, options.ranks),
          .parameters = static_cast<double>(step::parameter_count(training.parameters))};
}

}  // namespace weft::simulate
