#include "weft/plan/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/contents.h"
#include "weft/graph/kept.h"
#include "weft/graph/offloaded.h"

namespace weft {

namespace {

/// Finds the updates that may write their result over the state: all that reads the old content stands before them in
/// the graph, whose order is thus one that keeps to all of it. The result of another is copied to the state after the
/// step.
class UpdatesInPlace {
 public:
  explicit UpdatesInPlace(const Graph& graph)
      : graph_(graph), content_(find_contents(graph)), last_reader_(content_.size(), -1), replaced_(content_.size()) {
    const auto reads = [&](ValueId value, int32_t node) {
      int32_t& last = last_reader_[static_cast<size_t>(content(value).index)];
      last = std::max(last, node);
    };
    for (size_t index = 0; index < graph.nodes().size(); ++index) {
      const Node& node = graph.nodes()[index];
      if (!node.op->is_view)
        for (const ValueId input : node.inputs) reads(input, static_cast<int32_t>(index));
    }
    for (const GraphOutput& output : graph.outputs()) reads(output.value, kAfterTheStep);
    for (const StateUpdate& update : graph.updates()) {
      reads(update.value, kAfterTheStep);
      replaced_[static_cast<size_t>(graph.find_input(update.state)->value.index)] = true;
    }
  }

  /// What is read after the step must not lie where the step puts something else.
  void require_copies(const StorageMap& map) const {
    const auto input_of = [&](ValueId value) -> const GraphInput* {
      const int32_t input = map.input[static_cast<size_t>(map.storage(value))];
      return input < 0 ? nullptr : &graph_.inputs()[static_cast<size_t>(input)];
    };
    std::unordered_map<const GraphInput*, ValueId> successors;
    for (const StateUpdate& update : graph_.updates()) {
      const GraphInput* input = input_of(update.value);
      successors[graph_.find_input(update.state)] = update.value;
      if (input != nullptr && input->name != update.state)
        fail(ErrorKind::usage, "the successor of '{}' lies in '{}'; the pass copy_states makes a copy", update.state,
             input->name);
    }
    for (const GraphOutput& output : graph_.outputs()) {
      const auto successor = successors.find(input_of(output.value));
      if (successor != successors.end() && content(successor->second) != content(output.value))
        fail(ErrorKind::usage, "output '{}' lies in '{}', which the step replaces; the pass copy_states makes a copy",
             output.name, successor->first->name);
    }
  }

  bool may_overwrite(int32_t node_index, int input, const StorageMap& map) const {
    const Node& node = graph_.nodes()[static_cast<size_t>(node_index)];
    const ValueId state = node.inputs[static_cast<size_t>(input)];
    const int32_t storage = map.storage(state);
    const bool is_replaced = map.input[static_cast<size_t>(storage)] >= 0 &&
                             replaced_[static_cast<size_t>(map.root[static_cast<size_t>(storage)].index)];
    if (!is_replaced && !map.is_kept[static_cast<size_t>(storage)]) return false;
    for (size_t other = 0; other < node.inputs.size(); ++other)
      if (other != static_cast<size_t>(input) && map.storage(node.inputs[other]) == storage) return false;
    return last_reader_[static_cast<size_t>(content(state).index)] <= node_index;
  }

 private:
  static constexpr int32_t kAfterTheStep = std::numeric_limits<int32_t>::max();

  ValueId content(ValueId value) const { return content_[static_cast<size_t>(value.index)]; }

  const Graph& graph_;
  std::vector<ValueId> content_;
  std::vector<int32_t> last_reader_;  // per content: the last node in the graph's order
  std::vector<bool> replaced_;        // per value: a state that the step replaces
};

/// Pairs (output, input) of a node that share memory.
std::vector<std::pair<int64_t, int64_t>> shared_pairs(const Node& node, int32_t index, const UpdatesInPlace& updates,
                                                      const StorageMap& map) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  if (node.op->is_view) return {{0, 0}};
  if (node.op->is_update) {
    for (const auto& [output, input] : node.op->in_place)
      if (static_cast<size_t>(input) < node.inputs.size() && updates.may_overwrite(index, input, map))
        pairs.emplace_back(output, input);
    return pairs;
  }
  const std::vector<int64_t>& list = in_place_pairs(node.attributes);
  for (size_t at = 0; at + 1 < list.size(); at += 2) pairs.emplace_back(list[at], list[at + 1]);
  return pairs;
}

}  // namespace

StorageMap map_storage(const Graph& graph) {
  StorageMap map;
  map.of_value.assign(graph.values().size(), -1);
  const auto start = [&](ValueId value, int32_t input) {
    map.of_value[static_cast<size_t>(value.index)] = static_cast<int32_t>(map.root.size());
    map.root.push_back(value);
    map.bytes.push_back(graph.type(value).bytes());
    map.input.push_back(input);
    map.constant.push_back(-1);
    map.in_file.push_back(false);
    map.is_kept.push_back(false);
  };
  for (size_t index = 0; index < graph.inputs().size(); ++index)
    start(graph.inputs()[index].value, static_cast<int32_t>(index));
  const UpdatesInPlace updates(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    for (const auto& [output, input] : shared_pairs(node, static_cast<int32_t>(index), updates, map)) {
      const ValueId from = node.inputs[static_cast<size_t>(input)], to = node.outputs[static_cast<size_t>(output)];
      const int32_t storage = map.storage(from);
      const int32_t owner = map.input[static_cast<size_t>(storage)];
      if (owner >= 0 && !node.op->is_view && !node.op->is_update)
        fail(ErrorKind::internal, "internal error: '{}' would overwrite the input '{}'", graph.value(to).name,
             graph.inputs()[static_cast<size_t>(owner)].name);
      if (map.constant[static_cast<size_t>(storage)] >= 0 && !node.op->is_view)
        fail(ErrorKind::internal, "internal error: '{}' would overwrite the constant '{}'", graph.value(to).name,
             graph.value(from).name);
      if (map.is_kept[static_cast<size_t>(storage)] && !node.op->is_view && !is_renewal(node))
        fail(ErrorKind::internal, "internal error: '{}' would overwrite '{}', which is kept from step to step",
             graph.value(to).name, graph.value(from).name);
      map.of_value[static_cast<size_t>(to.index)] = storage;
      map.bytes[static_cast<size_t>(storage)] =
          std::max(map.bytes[static_cast<size_t>(storage)], graph.type(to).bytes());
    }
    for (const ValueId output : node.outputs)
      if (map.storage(output) < 0) start(output, -1);
    if (is_constant_tensor(node))
      map.constant[static_cast<size_t>(map.storage(node.outputs[0]))] = static_cast<int32_t>(index);
    if (is_kept(node)) map.is_kept[static_cast<size_t>(map.storage(node.outputs[0]))] = true;
    if (is_renewal(node) && !map.is_kept[static_cast<size_t>(map.storage(node.outputs[0]))])
      fail(ErrorKind::usage, "[renew] '{}' does not lie in '{}', which is read after it or not kept",
           graph.value(node.outputs[0]).name, graph.value(node.inputs[0]).name);
    if (is_store(node)) map.in_file[static_cast<size_t>(map.storage(node.outputs[0]))] = true;
    for (const ValueId input : node.inputs)
      if (map.in_file[static_cast<size_t>(map.storage(input))] && !is_load(node))
        fail(ErrorKind::usage, "[{}] '{}' reads '{}', which lies in a file; a load brings it back", node.op->name,
             graph.value(node.outputs[0]).name, graph.value(input).name);
  }
  for (size_t index = 0; index < graph.updates().size(); ++index) {
    const StateUpdate& update = graph.updates()[index];
    if (map.storage(update.value) != map.storage(graph.find_input(update.state)->value))
      map.copied_updates.push_back(static_cast<int32_t>(index));
  }
  updates.require_copies(map);
  return map;
}

}  // namespace weft
