#include "weft/plan/storage.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"

namespace weft {

namespace {

/// Is the value a graph input or what an update made of one?
bool lies_in_state(const Graph& graph, ValueId value) {
  const Node* producer = graph.producer(value);
  if (producer == nullptr) return true;
  if (!producer->op->is_update) return false;
  for (const auto& [output, input] : producer->op->in_place)
    if (producer->outputs[static_cast<size_t>(output)] == value)
      return lies_in_state(graph, producer->inputs[static_cast<size_t>(input)]);
  return false;
}

/// Pairs (output, input) of a node that share memory.
std::vector<std::pair<int64_t, int64_t>> shared_pairs(const Graph& graph, const Node& node) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  if (node.op->is_view) return {{0, 0}};
  if (node.op->is_update) {
    for (const auto& [output, input] : node.op->in_place) {
      const ValueId state = node.inputs[static_cast<size_t>(input)];
      if (lies_in_state(graph, state)) pairs.emplace_back(output, input);
    }
    return pairs;
  }
  if (node.attributes.has("in_place")) {
    const auto& list = node.attributes.integers("in_place");
    for (size_t at = 0; at + 1 < list.size(); at += 2) pairs.emplace_back(list[at], list[at + 1]);
  }
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
  };
  for (size_t index = 0; index < graph.inputs().size(); ++index)
    start(graph.inputs()[index].value, static_cast<int32_t>(index));
  for (const Node& node : graph.nodes()) {
    for (const auto& [output, input] : shared_pairs(graph, node)) {
      const ValueId from = node.inputs[static_cast<size_t>(input)], to = node.outputs[static_cast<size_t>(output)];
      const int32_t storage = map.storage(from);
      const int32_t owner = map.input[static_cast<size_t>(storage)];
      if (owner >= 0 && !node.op->is_view && !node.op->is_update)
        fail(ErrorKind::internal, "internal error: '{}' would overwrite the input '{}'", graph.value(to).name,
             graph.inputs()[static_cast<size_t>(owner)].name);
      map.of_value[static_cast<size_t>(to.index)] = storage;
      map.bytes[static_cast<size_t>(storage)] =
          std::max(map.bytes[static_cast<size_t>(storage)], graph.type(to).bytes());
    }
    for (const ValueId output : node.outputs)
      if (map.storage(output) < 0) start(output, -1);
  }
  for (size_t index = 0; index < graph.updates().size(); ++index) {
    const StateUpdate& update = graph.updates()[index];
    if (map.storage(update.value) != map.storage(graph.find_input(update.state)->value))
      map.copied_updates.push_back(static_cast<int32_t>(index));
  }
  return map;
}

}  // namespace weft
