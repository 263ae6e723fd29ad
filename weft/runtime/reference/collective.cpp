// The collectives of a rank that is alone: what it gave it gets back.
#include "weft/graph/collective.h"

#include <cstring>

#include "weft/base/error.h"
#include "weft/runtime/reference/reference.h"

namespace weft::reference {

namespace {

Body prepare_copies(const NodeSignature& node) {
  check(node.inputs == node.outputs, "a collective's results have other types than its operands");
  std::vector<size_t> bytes;
  for (const TensorType& type : node.inputs) bytes.push_back(static_cast<size_t>(type.bytes()));
  return [bytes](const KernelArguments& arguments) {
    for (size_t tensor = 0; tensor < bytes.size(); ++tensor)
      if (arguments.inputs[tensor] != arguments.outputs[tensor])
        std::memcpy(arguments.outputs[tensor], arguments.inputs[tensor], bytes[tensor]);
  };
}

/// As if all ranks had what this one has.
Body prepare_repetitions(const NodeSignature& node) {
  const auto ranks = static_cast<size_t>(node.attributes.integer("ranks"));
  std::vector<size_t> bytes;
  for (const TensorType& type : node.inputs) bytes.push_back(static_cast<size_t>(type.bytes()));
  return [bytes, ranks](const KernelArguments& arguments) {
    for (size_t tensor = 0; tensor < bytes.size(); ++tensor)
      for (size_t rank = 0; rank < ranks; ++rank)
        std::memcpy(arguments.output<std::byte>(tensor) + rank * bytes[tensor], arguments.inputs[tensor],
                    bytes[tensor]);
  };
}

}  // namespace

void add_collective(KernelTable& table) {
  for (const char* op : {kAllReduce, kAllReduceStart, kAllReduceWait, kAllGatherWait})
    add_any_layout(table, op, prepare_copies);
  for (const char* op : {kAllGather, kAllGatherStart}) add_any_layout(table, op, prepare_repetitions);
}

}  // namespace weft::reference
