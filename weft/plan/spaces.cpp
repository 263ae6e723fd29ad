#include "weft/plan/spaces.h"

#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/graph/space_copies.h"

namespace weft {

std::vector<bool> find_host_storages(const Graph& graph, const StorageMap& storage) {
  std::vector<bool> on_host(storage.root.size(), false);
  const auto at = [&](ValueId value) { return static_cast<size_t>(storage.storage(value)); };
  for (const GraphInput& input : graph.inputs())
    on_host[at(input.value)] = input.kind == InputKind::batch || input.kind == InputKind::scalar;
  for (const Node& node : graph.nodes())
    if (gives_to_host(node))
      for (const ValueId output : node.outputs) on_host[at(output)] = true;

  for (const Node& node : graph.nodes())
    for (const ValueId input : node.inputs)
      if (!node.op->is_view && on_host[at(input)] != (is_copy_to_device(node) || works_on_host(node)))
        fail(ErrorKind::usage, "[{}] '{}' reads '{}', which lies in the {}'s memory; a {} brings it to the other",
             node.op->name, graph.value(node.outputs[0]).name, graph.value(input).name,
             on_host[at(input)] ? "host" : "device", on_host[at(input)] ? kCopyToDevice : kCopyToHost);
  for (const GraphOutput& output : graph.outputs())
    if (!on_host[at(output.value)])
      fail(ErrorKind::usage, "output '{}' is '{}', which lies in the device's memory; a {} brings it to the host's",
           output.name, graph.value(output.value).name, kCopyToHost);
  for (const StateUpdate& update : graph.updates())
    if (on_host[at(update.value)])
      fail(ErrorKind::usage, "the successor of '{}' is '{}', which lies in the host's memory; a {} brings it back",
           update.state, graph.value(update.value).name, kCopyToDevice);
  return on_host;
}

}  // namespace weft
