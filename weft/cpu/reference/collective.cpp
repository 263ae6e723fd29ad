// The collectives of a rank that is alone: what it gives to another, that one gives to it.
#include "weft/graph/collective.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/cpu/reference/reference.h"

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

/// That of the first rank.
Body prepare_first_part(const NodeSignature& node) {
  const auto dimension = static_cast<int>(node.attributes.integer("dimension"));
  int64_t runs = node.attributes.integer("blocks");
  for (int before = 0; before < dimension; ++before) runs *= node.inputs[0].shape[before];
  const auto bytes = static_cast<size_t>(node.outputs[0].bytes() / std::max<int64_t>(1, runs));
  const auto stride = bytes * static_cast<size_t>(node.attributes.integer("ranks"));
  return [=](const KernelArguments& arguments) {
    for (size_t run = 0; run < static_cast<size_t>(runs); ++run)
      std::memcpy(arguments.output<std::byte>(0) + run * bytes, arguments.input<std::byte>(0) + run * stride, bytes);
  };
}

Body prepare_first_place(const NodeSignature&) {
  return [](const KernelArguments& arguments) { *arguments.output<int64_t>(0) = 0; };
}

/// Each rank's part of a tensor is what the others give this one for its own: they add up to one part.
Body prepare_sums_of_parts(const NodeSignature& node) {
  const int64_t ranks = node.attributes.integer("ranks");
  const double factor = node.attributes.text("reduction") == "mean" ? 1.0 / static_cast<double>(ranks) : 1.0;
  const std::vector<TensorType> types = node.outputs;
  return [types, ranks, factor](const KernelArguments& arguments) {
    for (size_t tensor = 0; tensor < types.size(); ++tensor) {
      const DType dtype = types[tensor].dtype;
      const int64_t elements = types[tensor].shape.elements();
      for (int64_t i = 0; i < elements; ++i) {
        double sum = 0;
        for (int64_t rank = 0; rank < ranks; ++rank)
          sum += load_element(dtype, arguments.inputs[tensor], rank * elements + i);
        store_element(dtype, arguments.outputs[tensor], i, sum * factor);
      }
    }
  };
}

/// From nobody.
Body prepare_zeros(const NodeSignature& node) {
  const auto bytes = static_cast<size_t>(node.outputs[0].bytes());
  return [bytes](const KernelArguments& arguments) { std::memset(arguments.outputs[0], 0, bytes); };
}

}  // namespace

void add_collective(KernelTable& table) {
  for (const char* op :
       {kAllReduce, kAllReduceStart, kAllReduceWait, kAllGatherWait, kReduceScatterStart, kBroadcast, kBroadcastStart,
        kBroadcastWait, kReduceToRoot, kReduceToRootStart, kReduceToRootWait, kAllToAll})
    add_any_layout(table, op, prepare_copies);
  for (const char* op : {kAllGather, kAllGatherStart}) add_any_layout(table, op, prepare_repetitions);
  add_any_layout(table, kOwnPart, prepare_first_part);
  add_any_layout(table, kAxisPlace, prepare_first_place);
  for (const char* op : {kReduceScatter, kReduceScatterWait}) add_any_layout(table, op, prepare_sums_of_parts);
  for (const char* op : {kSend, kSendStart, kSendWait, kReceiveWait}) add_any_layout(table, op, prepare_copies);
  for (const char* op : {kReceive, kReceiveStart}) add_any_layout(table, op, prepare_zeros);
}

}  // namespace weft::reference
