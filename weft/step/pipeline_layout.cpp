#include "weft/step/pipeline_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "weft/base/error.h"
#include "weft/passes/ranks/overlap_all_reduces.h"

namespace weft::step {

namespace {

using passes::PipelineSlot;
using passes::PipelineWork;

bool is_of(PipelineWork slot, PipelineWork node) {
  return slot == node || (slot == PipelineWork::backward && node != PipelineWork::forward);
}

class LayoutBuilder {
 public:
  LayoutBuilder(const MicroBatch& micro, PipelineLayout& layout) : micro_(micro), layout_(layout) {}

  /// What the placement of the stages decides.
  void find_messages() {
    find_terms();
    find_holders();
    find_readers();
  }

  /// In which slots messages are sent, and read for the first time.
  void time_messages() {
    std::map<int32_t, std::vector<size_t>> sent;  // messages by value
    for (size_t number = 0; number < layout_.messages.size(); ++number)
      sent[layout_.messages[number].value.index].push_back(number);
    for (int rank = 0; rank < layout_.ranks; ++rank) {
      const std::vector<PipelineSlot>& slots = layout_.schedule.order[static_cast<size_t>(rank)];
      for (size_t at = 0; at < slots.size(); ++at) {
        const auto m = static_cast<size_t>(slots[at].micro_batch);
        for (const NodeId id : layout_.nodes_of(rank, slots[at])) {
          for (const ValueId input : graph().node(id).inputs) {
            const auto message = layout_.message_to.find({input.index, rank});
            if (message == layout_.message_to.end()) continue;
            size_t& first = layout_.messages[message->second].first_read[m];
            first = std::min(first, at);
          }
          for (const ValueId output : graph().node(id).outputs)
            for (const size_t number : sent[output.index]) layout_.messages[number].sent[m] = at;
        }
      }
    }
  }

 private:
  const Graph& graph() const { return micro_.graph; }
  bool is_alive(size_t index) const { return layout_.staged.is_alive[index]; }

  /// Terms of a gradient that belong to different stages are summed apart, and put together once a step.
  void find_terms() {
    for (const TrainedParameter& parameter : micro_.trained) {
      std::vector<ValueId> leaves;
      add_leaves(parameter.gradient, leaves);
      std::set<int> stages, ranks;
      for (const ValueId leaf : leaves) {
        const NodeId producer = graph().value(leaf).producer;
        stages.insert(producer.valid() ? layout_.staged.stage[static_cast<size_t>(producer.index)] : passes::kNoStage);
        ranks.insert(layout_.rank_of(graph(), leaf));
      }
      if (stages.size() == 1 || stages.contains(passes::kNoStage)) {
        leaves = {parameter.gradient};
        ranks = {layout_.rank_of(graph(), parameter.gradient)};
      } else {
        leave_out_sums(parameter.gradient);
      }
      ranks.erase(PipelineLayout::kNobody);
      layout_.terms.push_back(std::move(leaves));
      layout_.contributors.emplace_back(ranks.begin(), ranks.end());
    }
  }

  bool is_sum(ValueId value) const {
    const NodeId producer = graph().value(value).producer;
    const size_t before = micro_.origins.forward_nodes, index = static_cast<size_t>(producer.index);
    return producer.valid() && index >= before && micro_.origins.is_sum[index - before];
  }

  void add_leaves(ValueId value, std::vector<ValueId>& leaves) const {
    if (!is_sum(value)) return leaves.push_back(value);
    for (const ValueId input : graph().node(graph().value(value).producer).inputs) add_leaves(input, leaves);
  }

  /// They are not made in a micro-batch.
  void leave_out_sums(ValueId value) {
    if (!is_sum(value)) return;
    const NodeId producer = graph().value(value).producer;
    layout_.staged.is_alive[static_cast<size_t>(producer.index)] = false;
    for (const ValueId input : graph().node(producer).inputs) leave_out_sums(input);
  }

  void find_holders() {
    std::map<int32_t, std::set<int>> readers;  // by value
    for (size_t index = 0; index < graph().nodes().size(); ++index) {
      const int rank = layout_.rank_of(NodeId{static_cast<int32_t>(index)});
      if (!is_alive(index) || rank == PipelineLayout::kNobody) continue;
      for (const ValueId input : graph().nodes()[index].inputs) readers[input.index].insert(rank);
    }
    std::set<std::string> updated;
    for (const StateUpdate& update : graph().updates()) updated.insert(update.state);
    for (const GraphInput& input : graph().inputs()) {
      if (input.kind != InputKind::parameter && !updated.contains(input.name) && !is_statistic(input)) continue;
      std::set<int> ranks = readers[input.value.index];
      if (ranks.empty()) ranks.insert(0);
      layout_.holders[input.name] = {ranks.begin(), ranks.end()};
    }
  }
  /// Also one that stays as it is.
  static bool is_statistic(const GraphInput& input) {
    return input.kind == InputKind::state && !input.name.starts_with(kSlotPrefix);
  }

  void find_readers() {
    for (size_t index = 0; index < graph().nodes().size(); ++index) {
      const NodeId id{static_cast<int32_t>(index)};
      const int rank = layout_.rank_of(id);
      if (!is_alive(index) || rank == PipelineLayout::kNobody) continue;
      for (const ValueId input : graph().node(id).inputs) {
        const int from = layout_.rank_of(graph(), input);
        if (from == PipelineLayout::kNobody || from == rank) continue;
        if (!layout_.message_to.emplace(std::pair(input.index, rank), layout_.messages.size()).second) continue;
        const auto count = static_cast<size_t>(layout_.micro_batches);
        layout_.messages.push_back(
            {input, from, rank, std::vector<size_t>(count), std::vector<size_t>(count, kUnread)});
      }
    }
  }

  static constexpr size_t kUnread = ~size_t{0};
  const MicroBatch& micro_;
  PipelineLayout& layout_;
};

int64_t mean_message_bytes(const MicroBatch& micro, const PipelineLayout& layout) {
  int64_t bytes = 0, ways = 0;
  for (const PipelineMessage& message : layout.messages) bytes += micro.graph.type(message.value).bytes();
  const passes::StagePlacement& placement = layout.schedule.placement;
  for (int stage = 1; stage < placement.stages(); ++stage)
    if (placement.rank_of(stage) != placement.rank_of(stage - 1)) ways += 2;
  return ways == 0 ? 0 : bytes / ways;
}

using Cut = std::function<passes::StagedGraph(int stages)>;

/// Why the layers cannot be divided so; empty where they can, as `staged` says.
std::string divide(const Cut& cut, const passes::StagePlacement& placement, passes::StagedGraph& staged) {
  try {
    staged = cut(placement.stages());
  } catch (const Error& error) {
    return error.what();
  }
  return passes::describe_idle(passes::idle_ranks(staged.has_work, placement));
}

/// The next step for the user. `bound`: no more are tried.
std::string most_ranks(const Cut& cut, passes::StagePlacement placement, size_t bound) {
  passes::StagedGraph staged;
  placement.ranks = std::min(placement.ranks - 1, static_cast<int>(bound));
  for (; placement.ranks > 1; --placement.ranks)
    if (divide(cut, placement, staged).empty())
      return fmt::format("{} ranks along the pipeline are the most that all have work: set mesh.pipeline={}",
                         placement.ranks, placement.ranks);
  return "no number of ranks along the pipeline gives each of them work: set mesh.pipeline=1";
}

}  // namespace

std::vector<NodeId> PipelineLayout::nodes_of(int rank, const PipelineSlot& slot) const {
  std::vector<NodeId> nodes;
  const int stage = schedule.placement.stage_of(rank, slot.chunk);
  for (size_t index = 0; index < staged.stage.size(); ++index)
    if (staged.is_alive[index] && staged.stage[index] == stage && is_of(slot.work, staged.work[index]))
      nodes.push_back(NodeId{static_cast<int32_t>(index)});
  return nodes;
}

PipelineLayout lay_out_pipeline(const MicroBatch& micro, const std::string& schedule, int ranks, int micro_batches,
                                int chunks, const CostModel& costs, int threads) {
  PipelineLayout layout;
  layout.ranks = ranks;
  layout.chunks = chunks;
  layout.micro_batches = micro_batches;
  layout.schedule.placement = passes::place_stages(schedule, ranks, chunks);
  const auto cut = [&](int stages) {
    std::vector<ValueId> gradients;
    for (const TrainedParameter& parameter : micro.trained) gradients.push_back(parameter.gradient);
    return passes::cut_into_stages(micro.graph, micro.origins, gradients, stages, costs, threads);
  };
  if (const std::string objection = divide(cut, layout.schedule.placement, layout.staged); !objection.empty())
    fail(ErrorKind::usage, "[{}] cannot be cut for mesh.pipeline = {}{}: {}; {}{}", micro.graph.name(), ranks,
         chunks > 1 ? fmt::format(" with pipeline.chunks = {}", chunks) : "", objection,
         most_ranks(cut, layout.schedule.placement, micro.trained.size()),
         chunks > 1 ? ", or choose fewer chunks" : "");
  LayoutBuilder builder(micro, layout);
  builder.find_messages();
  layout.message_bytes = mean_message_bytes(micro, layout);
  // By the same figures on every rank, whatever each has measured: the order may depend on it.
  if (layout.message_bytes > 0)
    layout.staged.times.link = passes::predicted_seconds(passes::Ranks{}, layout.message_bytes);
  layout.schedule = passes::make_pipeline_schedule(schedule, ranks, micro_batches, chunks, layout.staged.times);
  builder.time_messages();
  layout.forecast = passes::simulate(layout.schedule, layout.staged.times);
  return layout;
}

}  // namespace weft::step
