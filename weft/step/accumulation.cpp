#include "weft/step/accumulation.h"

#include <algorithm>

#include "weft/graph/accumulation.h"
#include "weft/graph/rewrite.h"
#include "weft/ops/update/accumulate.h"

namespace weft::step {

namespace {

/// What a sum's update reads, of each parameter, and how it counts.
struct Sums {
  ValueId keep, take;
  std::vector<ValueId> sums;
  std::vector<SlotSpec> slots;
};

Sums add_sums(Graph& graph, const std::vector<TrainedParameter>& trained) {
  Sums added{graph.add_input(InputKind::scalar, "accumulated", {DType::f32, {}, {}}),
             graph.add_input(InputKind::scalar, "share", {DType::f32, {}, {}}),
             {},
             {}};
  for (const TrainedParameter& parameter : trained) {
    added.slots.push_back(
        {slot_name(kGradientSumSlot, parameter.name), {DType::f32, graph.shape(parameter.value), {}}});
    added.sums.push_back(graph.add_input(InputKind::state, added.slots.back().name, added.slots.back().type));
  }
  return added;
}

std::string name_of_sum(const TrainedParameter& parameter) { return "accumulate/" + parameter.name; }

}  // namespace

std::vector<SlotSpec> accumulate_gradients(Graph& graph, const std::vector<TrainedParameter>& trained) {
  Sums added = add_sums(graph, trained);
  for (size_t index = 0; index < trained.size(); ++index)
    graph.add_update(added.slots[index].name, ops::blend_update(graph, added.sums[index], trained[index].gradient,
                                                                added.keep, added.take, name_of_sum(trained[index])));
  return std::move(added.slots);
}

std::vector<SlotSpec> accumulate_before_exchange(Graph& graph, std::vector<TrainedParameter>& trained) {
  Sums added = add_sums(graph, trained);
  const ValueId complete = graph.add_input(InputKind::scalar, kSumComplete, {DType::f32, {}, {}});
  for (size_t index = 0; index < trained.size(); ++index) {
    TrainedParameter& parameter = trained[index];
    parameter.gradient = ops::accumulate_update(graph, added.sums[index], parameter.gradient, added.keep, added.take,
                                                complete, name_of_sum(parameter));
    graph.add_update(added.slots[index].name, parameter.gradient);
  }
  return std::move(added.slots);
}

Graph accumulate_early(const Graph& graph) {
  const auto users = find_users(graph);
  Rewriter rewriter(graph);
  std::vector<bool> is_done(graph.nodes().size(), false);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    if (is_done[index]) continue;
    const NodeId id{static_cast<int32_t>(index)};
    rewriter.copy(id);
    for (const ValueId output : graph.node(id).outputs)
      for (const NodeId user : users[static_cast<size_t>(output.index)]) {
        const Node& sum = graph.node(user);
        if (!is_accumulation(sum) || is_done[static_cast<size_t>(user.index)]) continue;
        const bool has_all =
            std::all_of(sum.inputs.begin(), sum.inputs.end(), [&](ValueId input) { return rewriter.is_mapped(input); });
        if (!has_all) continue;  // it stays where it is
        rewriter.copy(user);
        is_done[static_cast<size_t>(user.index)] = true;
      }
  }
  return rewriter.finish();
}

}  // namespace weft::step
