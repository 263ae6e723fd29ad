#include "weft/step/grains.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "weft/base/error.h"
#include "weft/data/load/loader.h"
#include "weft/graph/rewrite.h"
#include "weft/ops/ops.h"
#include "weft/ops/update/accumulate.h"
#include "weft/step/accumulation.h"
#include "weft/step/compression.h"
#include "weft/step/data_parallel.h"
#include "weft/step/metrics/counted_labels.h"

namespace weft::step {

namespace {

/// Adds sums over the grains of a rank, and over the ranks. Nodes that depend on them run with the last grain alone.
class GrainSums {
 public:
  GrainSums(Graph& graph, int ranks, std::vector<SlotSpec>& slots) : graph_(graph), ranks_(ranks), slots_(slots) {}

  /// What the mean over the ranks makes the mean over all grains.
  ValueId share_of_mean(ValueId value, const std::string& name) {
    return sum(value, name, scalar("accumulated"), scalar("share"));
  }
  /// Over all grains of all ranks.
  ValueId mean(ValueId value, const std::string& name) { return over_ranks(share_of_mean(value, name), "mean", name); }
  ValueId total(ValueId value, const std::string& name) {
    return over_ranks(sum(value, name, scalar("accumulated"), constant(1)), "sum", name);
  }
  /// Over all ranks, of what each has with its last grain.
  ValueId total_of_last(ValueId value, const std::string& name) {
    return over_ranks(sum(value, name, constant(0), constant(1)), "sum", name);
  }

 private:
  ValueId scalar(const char* name) {
    const GraphInput* known = graph_.find_input(name);
    return known != nullptr ? known->value : graph_.add_input(InputKind::scalar, name, {DType::f32, {}, {}});
  }
  ValueId constant(double value) { return ops::constant(graph_, {}, value, fmt::format("grains.{}", value)); }
  ValueId sum(ValueId value, const std::string& name, ValueId keep, ValueId take) {
    slots_.push_back({slot_name(kShardSumSlot, "grains/" + name), {DType::f32, graph_.shape(value), {}}});
    const ValueId before = graph_.add_input(InputKind::state, slots_.back().name, slots_.back().type);
    const ValueId after =
        ops::accumulate_update(graph_, before, value, keep, take, scalar(kSumComplete), "accumulate/" + name);
    graph_.add_update(slots_.back().name, after);
    return after;
  }
  ValueId over_ranks(ValueId own, const char* reduction, const std::string& name) {
    return ranks_ == 1 ? own : ops::all_reduce(graph_, own, reduction, "all_reduce/" + name);
  }

  Graph& graph_;
  const int ranks_;
  std::vector<SlotSpec>& slots_;
};

/// Error(usage) for states that are not means of what the grains give.
void require_running_averages(const Graph& graph) {
  for (const StateUpdate& update : graph.updates())
    if (const Node* node = graph.producer(update.value); node == nullptr || node->op->name != "running_average")
      fail(ErrorKind::usage,
           "[{}] updates '{}' with each batch, which the grains of a batch cannot do alike; leave balance.grains away",
           graph.name(), update.state);
}

/// Running averages take the mean of the statistics of all grains.
Graph average_over_grains(const Graph& graph, int ranks, std::vector<SlotSpec>& slots) {
  Rewriter rewriter(graph);
  GrainSums sums(rewriter.result(), ranks, slots);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id{static_cast<int32_t>(index)};
    const Node& node = graph.node(id);
    if (node.op->name != "running_average") {
      rewriter.copy(id);
      continue;
    }
    std::vector<ValueId> operands = rewriter.map(node.inputs);
    operands[1] = sums.mean(operands[1], "statistics/" + graph.node_name(id));
    rewriter.replace(node.outputs[0],
                     rewriter.result().add(node.op->name, operands, node.attributes, graph.node_name(id)));
  }
  return rewriter.finish();
}

void append(std::vector<SlotSpec>& slots, const std::vector<SlotSpec>& more) {
  slots.insert(slots.end(), more.begin(), more.end());
}

/// Adds the outputs of the whole batch. Returns the factor of gradients whose labels do not all count; invalid where
/// all do.
ValueId add_outputs(Graph& graph, GrainSums& sums, const spec::RunSpec& spec, const ShardResults& results, int ranks) {
  const auto grains = static_cast<double>(spec.balance.grains);
  ValueId counted;
  if (results.counted.valid()) counted = sums.total(results.counted, "of/counted");
  const auto all_over_counted = [&](double of_grain, const char* name) {
    return counted.valid() ? scale_to_all(graph, ops::constant(graph, {}, 1), counted, of_grain * grains, name)
                           : ValueId{};
  };
  const auto scaled = [&](ValueId value, ValueId by, const char* name) {
    return by.valid() ? ops::multiply(graph, value, by, name) : value;
  };
  const ValueId factor = all_over_counted(results.rows, "rows.over_counted");
  graph.add_output("loss", scaled(sums.mean(results.loss, "of/loss"), factor, "loss.of_counted"));
  if (results.correct.valid()) {
    const ValueId by = results.scales_correct ? all_over_counted(results.labels, "labels.over_counted") : ValueId{};
    graph.add_output("correct", scaled(sums.total(results.correct, "of/correct"), by, "correct.of_counted"));
  }
  if (ranks > 1) {
    const ValueId wish = graph.add_input(InputKind::scalar, kStop, {DType::f32, {}, {}});
    graph.add_output(kStop, sums.total_of_last(wish, "of/stop"));
  }
  return factor;
}

}  // namespace

void require_grains(const spec::RunSpec& spec, int ranks) {
  const int64_t grains = spec.balance.grains;
  if (grains == 0 || grains >= ranks) return;
  fail(ErrorKind::usage,
       "balance.grains = {} for {} ranks, each of which takes at least one; set balance.grains to {} or more that "
       "divide the batch of {}, or start fewer ranks",
       grains, ranks, ranks, spec.batch);
}

int64_t rows_of_grain(const spec::RunSpec& spec, int64_t batch) {
  const int64_t grains = spec.balance.grains;
  if (batch % grains != 0)
    fail(ErrorKind::usage,
         "a batch of {} cannot be divided into {} equal grains (balance.grains); choose a batch of {}", batch, grains,
         (batch / grains + 1) * grains);
  return batch / grains;
}

std::vector<int64_t> equal_grains(int64_t grains, int ranks) {
  std::vector<int64_t> shares;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto [begin, end] = data::rows_of_share(grains, rank, ranks);
    shares.push_back(end - begin);
  }
  return shares;
}

std::vector<int64_t> grains_to_begin_with(const std::vector<int64_t>& recorded, int64_t grains, int ranks) {
  const bool fits = recorded.size() == static_cast<size_t>(ranks) &&
                    std::all_of(recorded.begin(), recorded.end(), [](int64_t share) { return share >= 1; }) &&
                    std::accumulate(recorded.begin(), recorded.end(), int64_t{0}) == grains;
  return fits ? recorded : equal_grains(grains, ranks);
}

int64_t first_grain(const std::vector<int64_t>& shares, int rank) {
  return std::accumulate(shares.begin(), shares.begin() + rank, int64_t{0});
}

TrainingStep build_step_of_grains(Graph grain, const spec::RunSpec& spec, std::vector<models::ParameterSpec> parameters,
                                  std::vector<TrainedParameter> trained, const std::vector<std::string>& averaged,
                                  const ShardResults& results, int ranks, const GradientExchange& exchange,
                                  const Entries& entries) {
  require_running_averages(grain);
  std::vector<SlotSpec> slots;
  GrainSums sums(grain, ranks, slots);
  const ValueId factor = add_outputs(grain, sums, spec, results, ranks);
  for (TrainedParameter& parameter : trained)
    parameter.gradient = sums.share_of_mean(parameter.gradient, parameter.name);
  if (ranks > 1) append(slots, exchange(grain, trained));
  if (factor.valid())
    for (TrainedParameter& parameter : trained)
      parameter.gradient = ops::multiply(grain, parameter.gradient, factor, parameter.name + ".of_counted");
  append(slots, add_update(grain, spec, trained, averaged, "step", entries));
  const Graph early = accumulate_early(grain);
  Graph step = average_over_grains(early, ranks, slots);
  if (ranks > 1) step = compress_early(step);
  return {std::move(step), std::move(parameters), std::move(slots)};
}

}  // namespace weft::step
