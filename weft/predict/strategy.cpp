#include "weft/predict/strategy.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "weft/step/sharded_states.h"
#include "weft/step/virtual_ranks.h"

namespace weft::predict {

Strategy strategy_of(const spec::RunSpec& spec, int64_t ranks, int64_t ranks_per_host) {
  return {.ranks = ranks,
          .ranks_per_host = ranks_per_host,
          .threads = spec.threads,
          .batch = spec.batch,
          .accumulate = spec.accumulate,
          .precision = spec.precision,
          .zero = spec.shard.zero,
          .late_multiply = spec.late_multiply,
          .compression = spec.compression.method,
          .averaging_period = spec.averaging.period,
          .states_every = spec.averaging.states_every,
          .memory_limit = spec.memory_limit,
          .offload = spec.offload,
          .tensor = spec.mesh.tensor,
          .pipeline = spec.mesh.pipeline,
          .schedule = spec.pipeline.schedule,
          .micro_batches = spec.pipeline.micro_batches,
          .chunks = spec.pipeline.chunks};
}

void apply(const Strategy& strategy, spec::RunSpec& spec) {
  spec.threads = strategy.threads;
  spec.batch = strategy.batch;
  spec.accumulate = strategy.accumulate;
  spec.precision = strategy.precision;
  spec.shard.zero = strategy.zero;
  spec.late_multiply = strategy.late_multiply;
  spec.compression.method = strategy.compression;
  if (strategy.averaging_period > 0) {
    spec.averaging.period = strategy.averaging_period;
    spec.averaging.states_every = strategy.states_every;
  } else {
    spec.averaging = {};  // the rest of it would be of nothing
  }
  spec.memory_limit = strategy.memory_limit;
  spec.offload = strategy.offload;
  spec.mesh.tensor = strategy.tensor;
  spec.mesh.pipeline = strategy.pipeline;
  spec.pipeline = {strategy.schedule, strategy.micro_batches, strategy.chunks};
}

spec::RunSpec recipe_by(const Strategy& strategy, const spec::RunSpec& spec, const Entries& entries) {
  spec::RunSpec own = spec;
  apply(strategy, own);
  spec::resolve(own, entries);
  step::require_sharers(own, static_cast<int>(strategy.ranks));
  step::require_shards(own, static_cast<int>(strategy.ranks));
  return own;
}

bool can_divide(const spec::RunSpec& spec, int64_t ranks) {
  const int64_t of_replica = spec.mesh.tensor * spec.mesh.pipeline, data = ranks / of_replica;
  if (ranks % of_replica != 0 || (spec.mesh.data > 0 && spec.mesh.data != data)) return false;
  return spec.virtual_ranks % ranks == 0 && spec.batch % data == 0 && spec.batch >= data;
}

std::string describe(const Strategy& strategy) {
  std::string text = strategy.ranks == 1 ? "one rank" : fmt::format("{} ranks", strategy.ranks);
  if (strategy.ranks > 1)
    text += strategy.hosts() == 1 ? " on one host" : fmt::format(" on {} hosts", strategy.hosts());
  text += fmt::format(", batch {}", strategy.batch);
  if (strategy.accumulate > 1) text += fmt::format(" x {} accumulated", strategy.accumulate);
  text += ", " + strategy.precision;
  if (strategy.ranks > 1) {
    if (strategy.tensor > 1) text += fmt::format(", layers shared by {}", strategy.tensor);
    if (strategy.pipeline > 1)
      text += fmt::format(", {} stages, {} micro-batches, {}", strategy.pipeline, strategy.micro_batches,
                          strategy.schedule);
    if (strategy.zero > 0) text += fmt::format(", zero {}", strategy.zero);
    if (strategy.compression != "none") text += fmt::format(", gradients {}", strategy.compression);
    if (strategy.averaging_period > 0) text += fmt::format(", mean of {} steps", strategy.averaging_period);
    if (strategy.states_every > 1)
      text += fmt::format(", of all states every {}", strategy.states_every * strategy.averaging_period);
    if (!strategy.late_multiply) text += ", no late multiply";
  }
  if (!strategy.memory_limit.empty()) text += ", recompute to " + strategy.memory_limit;
  if (!strategy.offload.empty()) text += ", offload";
  return text;
}

nlohmann::ordered_json to_json(const Strategy& strategy) {
  return {{"ranks", strategy.ranks},
          {"ranks_per_host", strategy.ranks_per_host},
          {"threads", strategy.threads},
          {"batch", strategy.batch},
          {"accumulate", strategy.accumulate},
          {"precision", strategy.precision},
          {"zero", strategy.zero},
          {"late_multiply", strategy.late_multiply},
          {"compression", strategy.compression},
          {"averaging_period", strategy.averaging_period},
          {"states_every", strategy.states_every},
          {"memory_limit", strategy.memory_limit},
          {"offload", strategy.offload},
          {"tensor", strategy.tensor},
          {"pipeline", strategy.pipeline},
          {"schedule", strategy.schedule},
          {"micro_batches", strategy.micro_batches},
          {"chunks", strategy.chunks}};
}

Strategy strategy_from(const nlohmann::json& root) {
  const Strategy usual;
  return {.ranks = root.value("ranks", usual.ranks),
          .ranks_per_host = root.value("ranks_per_host", usual.ranks_per_host),
          .threads = root.value("threads", usual.threads),
          .batch = root.value("batch", usual.batch),
          .accumulate = root.value("accumulate", usual.accumulate),
          .precision = root.value("precision", usual.precision),
          .zero = root.value("zero", usual.zero),
          .late_multiply = root.value("late_multiply", usual.late_multiply),
          .compression = root.value("compression", usual.compression),
          .averaging_period = root.value("averaging_period", usual.averaging_period),
          .states_every = root.value("states_every", usual.states_every),
          .memory_limit = root.value("memory_limit", usual.memory_limit),
          .offload = root.value("offload", usual.offload),
          .tensor = root.value("tensor", usual.tensor),
          .pipeline = root.value("pipeline", usual.pipeline),
          .schedule = root.value("schedule", usual.schedule),
          .micro_batches = root.value("micro_batches", usual.micro_batches),
          .chunks = root.value("chunks", usual.chunks)};
}

}  // namespace weft::predict
