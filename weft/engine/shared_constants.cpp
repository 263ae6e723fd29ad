#include "weft/engine/shared_constants.h"

#include <fmt/format.h>

#include <set>

#include "weft/graph/constant_node.h"
#include "weft/graph/signature_key.h"

namespace weft::engine {

namespace {

/// A node with one result and the numbers that it computes from.
std::string key_of(const NodeSignature& node, const std::vector<Tensor>& operands) {
  std::string key = signature_key(node);
  for (const TensorType& type : node.outputs) key += ";" + to_string(type);
  for (const Tensor& operand : operands) key += ";" + to_string(ConstantData(operand).hash());
  return key;
}

}  // namespace

void SharedConstants::keep_those_of(const std::vector<const Graph*>& graphs) {
  std::set<const void*> used;
  for (const Graph* graph : graphs)
    for (const Node& node : graph->nodes())
      if (is_constant_tensor(node)) used.insert(constant_of(node)->tensor().data());
  std::erase_if(tensors_, [&](const auto& entry) { return !used.contains(entry.second.data()); });
}

const Tensor* SharedConstants::find(const std::string& key) const {
  const auto found = tensors_.find(key);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::optional<std::vector<Tensor>> SharingBackend::evaluate(const NodeSignature& node,
                                                            const std::vector<Tensor>& operands) const {
  if (node.outputs.size() != 1 || operands.empty()) return backend_.evaluate(node, operands);
  const std::string key = key_of(node, operands);
  std::optional<std::vector<Tensor>> results;
  if (const Tensor* known = constants_.find(key))
    results.emplace({*known});
  else if ((results = backend_.evaluate(node, operands)))
    constants_.add(key, results->front());
  if (mapping_ != nullptr)
    for (const Tensor& operand : operands)
      mapping_->drop({operand.data_as<std::byte>(), static_cast<size_t>(operand.bytes())});
  return results;
}

}  // namespace weft::engine
