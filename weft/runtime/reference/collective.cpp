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

}  // namespace

void add_collective(KernelTable& table) {
  for (const char* op : {kAllReduce, kAllReduceStart, kAllReduceWait}) add_any_layout(table, op, prepare_copies);
}

}  // namespace weft::reference
