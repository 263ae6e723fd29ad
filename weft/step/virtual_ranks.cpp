#include "weft/step/virtual_ranks.h"

#include <algorithm>
#include <bit>
#include <map>

#include "weft/base/error.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/graph/rewrite.h"
#include "weft/ops/ops.h"
#include "weft/ops/ranks/tree_sum.h"
#include "weft/step/data_parallel.h"
#include "weft/step/grains.h"
#include "weft/step/metrics/counted_labels.h"
#include "weft/step/micro_batches.h"

namespace weft::step {

namespace {

/// Of the scalars, beside the parameters' names.
constexpr const char *kLoss = "of/loss", *kCorrect = "of/correct", *kCounted = "of/counted";

int levels_of(int64_t shards) { return std::max(1, std::countr_zero(static_cast<uint64_t>(shards))); }

std::string slot_of(int level, const std::string& name) {
  return slot_name(kShardSumSlot, fmt::format("{}/{}", level, name));
}

/// Adds to the step of a shard what sums over the shards of this process.
class ShardSums {
 public:
  ShardSums(int64_t shards, std::vector<SlotSpec>& slots) : levels_(levels_of(shards)), slots_(slots) {}

  void add(Graph& graph, const std::string& name, ValueId value) {
    const GraphInput* index = graph.find_input(kShardIndex);
    const ValueId shard =
        index != nullptr ? index->value : graph.add_input(InputKind::scalar, kShardIndex, {DType::i64, {}, {}});
    std::vector<ValueId> partials;
    for (int level = 0; level < levels_; ++level) {
      slots_.push_back({slot_of(level, name), {DType::f32, graph.shape(value), {}}});
      partials.push_back(graph.add_input(InputKind::state, slots_.back().name, slots_.back().type));
    }
    const std::vector<ValueId> next = ops::tree_sum_update(graph, value, shard, partials, "sum/" + name);
    for (int level = 0; level < levels_; ++level)
      graph.add_update(slot_of(level, name), next[static_cast<size_t>(level)]);
  }

 private:
  const int levels_;
  std::vector<SlotSpec>& slots_;
};

/// A running average that the update has to follow up.
struct Statistic {
  std::string state, name;
  Attributes attributes;
};

/// The step without running averages, whose samples are summed instead.
Graph take_statistics_out(const Graph& graph, ShardSums& sums, std::vector<Statistic>& statistics) {
  Rewriter rewriter(graph);
  std::map<int32_t, NodeId> averages;  // by value
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id{static_cast<int32_t>(index)};
    if (graph.node(id).op->name == "running_average")
      averages[graph.node(id).outputs[0].index] = id;
    else
      rewriter.copy(id);
  }
  Graph& result = rewriter.result();
  for (const GraphOutput& output : graph.outputs()) result.add_output(output.name, rewriter.map(output.value));
  for (const StateUpdate& update : graph.updates()) {
    const auto average = averages.find(update.value.index);
    if (average != averages.end()) {
      const Node& node = graph.node(average->second);
      statistics.push_back({update.state, graph.node_name(average->second), node.attributes});
      sums.add(result, update.state, rewriter.map(node.inputs[1]));
    } else if (update.state.starts_with(slot_name(kShardSumSlot, ""))) {
      result.add_update(update.state, rewriter.map(update.value));
    } else {
      fail(ErrorKind::usage,
           "[{}] updates '{}' with each batch, which the shards of a batch cannot do alike; leave virtual_ranks away",
           graph.name(), update.state);
    }
  }
  return std::move(result);
}

/// What the update's graph reads of the shards' sums.
class SumsOfShards {
 public:
  SumsOfShards(Graph& graph, const spec::RunSpec& spec, int ranks)
      : graph_(graph), shards_(spec.virtual_ranks), top_(levels_of(shards_of_rank(spec, ranks)) - 1), ranks_(ranks) {}

  ValueId sum(const std::string& name, const Shape& shape) {
    const ValueId own = graph_.add_input(InputKind::state, slot_of(top_, name), {DType::f32, shape, {}});
    return ranks_ == 1 ? own : ops::all_reduce(graph_, own, "sum", "all_reduce/" + name);
  }
  /// The division is exact: by a power of two.
  ValueId mean(const std::string& name, const Shape& shape) {
    return ops::multiply_scalar(graph_, sum(name, shape), 1 / static_cast<double>(shards_), name + ".of_shards");
  }

 private:
  Graph& graph_;
  const int64_t shards_;
  const int top_, ranks_;
};

Graph build_sharded_update(const Graph& shard, const spec::RunSpec& spec, std::vector<TrainedParameter> trained,
                           const std::vector<Statistic>& statistics, const ShardResults& results,
                           const std::vector<std::string>& averaged, int ranks, std::vector<SlotSpec>& slots,
                           const Entries& entries) {
  Graph graph(shard.registry(), spec.model.name + " update");
  SumsOfShards sums(graph, spec, ranks);
  const bool has_ignored = results.counted.valid();
  const ValueId counted = has_ignored ? sums.sum(kCounted, {}) : ValueId{};
  const auto all_over_counted = [&](double of_shard, const char* name) {
    if (!has_ignored) return ValueId{};
    const double all = of_shard * static_cast<double>(spec.virtual_ranks);
    return scale_to_all(graph, ops::constant(graph, {}, 1), counted, all, name);
  };
  const ValueId factor = all_over_counted(results.rows, "rows.over_counted");
  const auto scaled = [&](ValueId value, ValueId by) { return by.valid() ? ops::multiply(graph, value, by) : value; };
  for (TrainedParameter& parameter : trained) {
    const Shape& shape = shard.shape(parameter.value);
    parameter.value = graph.add_input(InputKind::parameter, parameter.name, {DType::f32, shape, {}});
    parameter.gradient = scaled(sums.mean(parameter.name, shape), factor);
  }
  graph.add_output("loss", scaled(sums.mean(kLoss, {}), factor));
  if (results.correct.valid()) {
    const ValueId by = results.scales_correct ? all_over_counted(results.labels, "labels.over_counted") : ValueId{};
    graph.add_output("correct", scaled(sums.sum(kCorrect, {}), by));
  }
  if (ranks > 1) add_stop(graph);
  for (const Statistic& statistic : statistics) {
    const GraphInput& input = *shard.find_input(statistic.state);
    const TensorType type{DType::f32, shard.shape(input.value), {}};
    const ValueId running = graph.add_input(input.kind, statistic.state, type);
    graph.add_update(statistic.state, graph.add("running_average", {running, sums.mean(statistic.state, type.shape)},
                                                statistic.attributes, statistic.name));
  }
  if (spec.ema.decay > 0)
    for (const std::string& name : averaged)
      if (graph.find_input(name) == nullptr)
        graph.add_input(InputKind::state, name, shard.type(shard.find_input(name)->value));
  const std::vector<SlotSpec> more = add_update(graph, spec, trained, averaged, "update", entries);
  slots.insert(slots.end(), more.begin(), more.end());
  return graph;
}

}  // namespace

int64_t shards_of_rank(const spec::RunSpec& spec, int ranks) {
  if (spec.balance.grains > 0) return spec.balance.grains / ranks;
  return spec.virtual_ranks == 0 ? 1 : spec.virtual_ranks / ranks;
}

int64_t samples_at_a_time(const spec::RunSpec& spec, int64_t batch, int ranks) {
  if (spec.balance.grains > 0) return rows_of_grain(spec, batch);
  return batch / (spec.virtual_ranks == 0 ? ranks : spec.virtual_ranks);
}

void require_shards(const spec::RunSpec& spec, int ranks) {
  require_grains(spec, ranks);
  if (spec.virtual_ranks % ranks == 0) return;
  fail(ErrorKind::usage,
       "virtual_ranks = {} cannot be divided among {} ranks; start {} of them, or fewer by a power of two",
       spec.virtual_ranks, ranks, std::min<int64_t>(spec.virtual_ranks, std::bit_floor(static_cast<uint64_t>(ranks))));
}

int place_of(const spec::RunSpec& spec, const comm::Communicator* ranks) {
  require_shards(spec, comm::number_of(ranks));
  if (spec.virtual_ranks == 0 || ranks == nullptr) return comm::rank_of(ranks);
  std::map<int, int> of_host;
  for (const comm::Member& member : ranks->members()) ++of_host[member.host_index];
  const int each = of_host.begin()->second;
  for (const comm::Member& member : ranks->members())
    if (of_host[member.host_index] != each)
      fail(ErrorKind::usage,
           "virtual_ranks = {}: host '{}' has {} ranks, but '{}' has {}; the tree of sums wants as many on each, as "
           "mpirun -H a:2,b:2 places them",
           spec.virtual_ranks, ranks->members()[0].host, of_host[ranks->members()[0].host_index], member.host,
           of_host[member.host_index]);
  const comm::Member& own = ranks->members()[static_cast<size_t>(ranks->rank())];
  return own.host_index * each + own.local_rank;
}

TrainingStep build_sharded_step(Graph shard, const spec::RunSpec& spec, std::vector<models::ParameterSpec> parameters,
                                std::vector<TrainedParameter> trained, const std::vector<std::string>& averaged,
                                const ShardResults& results, int ranks, const Entries& entries) {
  std::vector<SlotSpec> slots;
  ShardSums sums(shards_of_rank(spec, ranks), slots);
  for (const TrainedParameter& parameter : trained) sums.add(shard, parameter.name, parameter.gradient);
  sums.add(shard, kLoss, results.loss);
  if (results.correct.valid()) sums.add(shard, kCorrect, results.correct);
  if (results.counted.valid()) sums.add(shard, kCounted, results.counted);
  std::vector<Statistic> statistics;
  Graph step = take_statistics_out(shard, sums, statistics);
  Graph update =
      build_sharded_update(shard, spec, std::move(trained), statistics, results, averaged, ranks, slots, entries);
  return {std::move(step), std::move(parameters), std::move(slots), std::move(update)};
}

void start_shard_sums(const TrainingStep& step, State& state) {
  std::vector<SlotSpec> sums;
  for (const SlotSpec& slot : step.slots)
    if (slot.name.starts_with(slot_name(kShardSumSlot, "")) || slot.name.starts_with(slot_name(kMicroSumSlot, "")))
      sums.push_back(slot);
  start_slots(sums, state, step.mesh, step.rank);
}

std::vector<int64_t> rows_of_shards(int64_t count, int64_t virtual_ranks, int place, int processes) {
  const int64_t own = virtual_ranks / processes;
  std::vector<int64_t> rows;
  for (int64_t shard = place * own; shard < (place + 1) * own; ++shard) {
    const auto [begin, end] = data::rows_of_share(count, static_cast<int>(shard), static_cast<int>(virtual_ranks));
    rows.push_back(end - begin);
  }
  return rows;
}

}  // namespace weft::step
