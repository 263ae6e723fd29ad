#include "weft/compile/memoized_backend.h"

namespace weft {

namespace {

/// Everything that an answer may depend on: the node's name and who shares its memory do not count.
std::string key_of(const NodeSignature& node) {
  std::string key = node.op->name;
  for (const auto& [name, value] : node.attributes.values())
    if (name != "in_place" && name != "recomputed") key += "," + name + "=" + to_string(value);
  for (const auto* types : {&node.inputs, &node.outputs}) {
    key += ";";
    for (const TensorType& type : *types) key += to_string(type) + " ";
  }
  return key;
}

template <typename Answers, typename Ask>
auto remembered(Answers& answers, const NodeSignature& node, Ask&& ask) {
  const std::string key = key_of(node);
  const auto known = answers.find(key);
  if (known != answers.end()) return known->second;
  return answers.emplace(key, ask()).first->second;
}

}  // namespace

std::optional<LayoutChoice> MemoizedBackend::preferred_layouts(const NodeSignature& node) const {
  return remembered(layouts_, node, [&] { return backend_.preferred_layouts(node); });
}

bool MemoizedBackend::supports_layouts(const NodeSignature& node) const {
  return remembered(supported_, node, [&] { return backend_.supports_layouts(node); });
}

KernelChoice MemoizedBackend::choose_kernel(const NodeSignature& node) const {
  return remembered(kernels_, node, [&] { return backend_.choose_kernel(node); });
}

}  // namespace weft
