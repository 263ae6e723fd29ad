#include "weft/passes/ranks/gather_states.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/graph/collective.h"
#include "weft/graph/tensor_parts.h"
#include "weft/ops/ranks/collective.h"
#include "weft/passes/ranks/gather_parts.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

class StateGatherer {
 public:
  StateGatherer(const Graph& graph, const std::map<std::string, GatheredState>& states, int64_t first_tag)
      : graph_(graph),
        states_(states),
        next_tag_(first_tag),
        result_(graph.registry(), graph.name()),
        mapped_(graph.values().size()) {
    check(graph.updates().empty(), "a graph that updates no state");
  }

  Graph run() {
    for (const GraphInput& input : graph_.inputs()) add_input(input);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const Node& node = graph_.nodes()[index];
      std::vector<ValueId> operands;
      for (const ValueId input : node.inputs) operands.push_back(whole(input));
      const std::vector<ValueId> outputs =
          result_.add_node(node.op->name, operands, node.attributes, graph_.node_name(node_at(index)));
      for (size_t output = 0; output < outputs.size(); ++output) {
        mapped_[index_of(node.outputs[output])] = outputs[output];
        result_.copy_sharding(outputs[output], graph_, node.outputs[output]);
      }
    }
    for (const GraphOutput& output : graph_.outputs()) result_.add_output(output.name, whole(output.value));
    return std::move(result_);
  }

 private:
  void add_input(const GraphInput& input) {
    const TensorType& type = graph_.type(input.value);
    const auto found = states_.find(input.name);
    if (found == states_.end()) {
      const ValueId added = mapped_[index_of(input.value)] = result_.add_input(input.kind, input.name, type);
      result_.copy_sharding(added, graph_, input.value);
      return;
    }
    const GatheredState& state = found->second;
    check(state.sharding.whole == type.shape, "the sharding of a state");
    waiting_[input.value.index] = &*found;
    if (!state.is_held) return;
    const TensorType part{type.dtype, part_shape(state.sharding), {}};
    const ValueId added = mapped_[index_of(input.value)] = result_.add_input(input.kind, input.name, part);
    if (!state.sharding.is_replicated()) result_.set_sharding(added, state.sharding);
  }

  ValueId whole(ValueId value) {
    if (const auto found = waiting_.find(value.index); found != waiting_.end()) {
      const auto& [name, state] = *found->second;
      mapped_[index_of(value)] = made_whole(name, state, value);
      waiting_.erase(found);
    }
    return mapped_[index_of(value)];
  }

  ValueId made_whole(const std::string& name, const GatheredState& state, ValueId value) {
    const Sharding& sharding = state.sharding;
    const int64_t tag = next_tag_++;  // all ranks count alike, whether they have a message or not
    ValueId own = mapped_[index_of(value)];
    const int64_t bytes = TensorType{graph_.type(value).dtype, part_shape(sharding), {}}.bytes();
    if ((!state.is_held || !state.to.empty()) && bytes > std::numeric_limits<int>::max())
      fail(ErrorKind::usage,
           "evaluations by layer send '{}' from stage to stage, and {} of it are more than one message takes; set "
           "evaluation.weights=once, or split it with mesh.tensor",
           name, human_bytes(static_cast<double>(bytes)));
    if (!state.is_held)
      own = ops::receive(result_, state.from, tag, {graph_.type(value).dtype, part_shape(sharding), {}},
                         "receive/" + name);
    for (const int64_t peer : state.to) ops::send(result_, own, peer, tag, fmt::format("send/{}/{}", name, peer));
    Sharding rest = sharding;
    if (sharding.flat) {
      const ValueId parts = result_.add(
          kAllGather, {own}, {{"ranks", sharding.flat->size}, {kAxis, sharding.flat->name}}, "all_gather/" + name);
      own = restore_elements(result_, parts, flat_of_part(sharding).whole, name);
      rest.flat.reset();
    }
    for (size_t dimension = 0; dimension < rest.split.size(); ++dimension) {
      if (!rest.split[dimension]) continue;
      const int64_t blocks = blocks_of(rest, static_cast<int>(dimension));
      const MeshAxis axis = *std::exchange(rest.split[dimension], std::nullopt);
      own = gather_dimension(result_, own, static_cast<int>(dimension), blocks, axis, part_shape(rest),
                             fmt::format("{}.{}", name, axis.name));
    }
    return own;
  }

  const Graph& graph_;
  const std::map<std::string, GatheredState>& states_;
  int64_t next_tag_;
  Graph result_;
  std::vector<ValueId> mapped_;                                                    // per value
  std::map<int32_t, const std::pair<const std::string, GatheredState>*> waiting_;  // by value: not put together yet
};

}  // namespace

Graph gather_states(const Graph& graph, const std::map<std::string, GatheredState>& states, int64_t first_tag) {
  return StateGatherer(graph, states, first_tag).run();
}

}  // namespace weft::passes
