// Messages from one rank to another. A rank that is alone sends to nobody, and receives zeros.
#include "weft/ops/ranks/collective.h"
#include "weft/ops/ranks/collective_support.h"

namespace weft::ops {

namespace {

constexpr int64_t kMostTags = int64_t{1} << 20;

void require_peer(const InferContext& context) {
  const int64_t peer = context.attributes.integer("peer"), tag = context.attributes.integer("tag");
  if (peer < 0) context.fail(fmt::format("peer={} is no rank: they count from 0", peer));
  if (tag < 0 || tag >= kMostTags) context.fail(fmt::format("tag={}: tags are 0 to {}", tag, kMostTags - 1));
}

std::vector<TensorType> type_sent(const InferContext& context) {
  require_peer(context);
  return types_of_operands(context);
}

std::vector<TensorType> type_received(const InferContext& context) {
  require_peer(context);
  const std::vector<int64_t>& dims = context.attributes.integers("shape");
  for (const int64_t dim : dims)
    if (dim < 0) context.fail(fmt::format("shape [{}] has a negative dimension", fmt::join(dims, ", ")));
  const std::string& name = context.attributes.text("dtype");
  const auto dtype = parse_dtype(name);
  if (!dtype) context.fail(fmt::format("dtype \"{}\" is not known; give f32, f64, bf16, f16, i64, i32 or u8", name));
  return {typed(*dtype, Shape(dims))};
}

std::vector<AttributeSpec> attributes_of_message(bool receives) {
  std::vector<AttributeSpec> attributes{required_attribute("peer", int64_t{1}, "the other rank"),
                                        required_attribute("tag", int64_t{0}, "by which both know the message")};
  if (receives) {
    attributes.push_back(required_attribute("shape", std::vector<int64_t>{}, "of what the peer sends"));
    attributes.push_back(attribute("dtype", "f32", "f32, f64, bf16, f16, i64, i32 or u8"));
  }
  return attributes;
}

OpDef message_op(const char* name, std::string summary, std::vector<std::string> inputs, const char* output,
                 bool is_half) {
  const bool receives = inputs.empty();
  OpDef op;
  op.name = name;
  op.summary = std::move(summary);
  op.inputs = std::move(inputs);
  op.outputs = {output};
  if (is_half)
    op.attributes = {required_attribute("number", int64_t{0}, "of the message in its graph"),
                     required_attribute("tensors", "", "what is sent, for messages")};
  for (const AttributeSpec& spec : attributes_of_message(receives)) op.attributes.push_back(spec);
  op.infer = receives ? type_received : type_sent;
  if (!receives) op.in_place = {{0, 0}};
  Attributes attributes{{"peer", int64_t{1}}, {"tag", int64_t{7}}};
  if (is_half) {
    attributes.set("number", int64_t{0});
    attributes.set("tensors", std::string("activations"));
  }
  const std::pair<const char*, TensorType> types[] = {
      {"matrix", f32({3, 5})}, {"vector", f32({17})}, {"scalar", f32({})}};
  for (const auto& [label, type] : types) {
    OpExample example{label, {}, attributes};
    if (receives)
      example.attributes.set("shape", type.shape.dims());
    else
      example.inputs = {type};
    op.examples.push_back(std::move(example));
  }
  op.work = work::kCommunication;
  return op;
}

}  // namespace

void add_message_ops(OpRegistry& registry) {
  registry.add(message_op(kSend, "Sends a tensor to another rank, and gives it back.", {"x"}, "sent", false));
  OpDef send_start = message_op(kSendStart, "Begins to send a tensor to another rank.", {"x"}, "pending", true);
  send_start.attributes.push_back(attribute("forward", false, "of the forward part of a step, such as an activation"));
  registry.add(std::move(send_start));
  registry.add(message_op(kSendWait, "Waits until a tensor has been sent.", {"pending"}, "sent", true));
  registry.add(message_op(kReceive, "What another rank sends.", {}, "y", false));
  registry.add(message_op(kReceiveStart, "Begins to receive what another rank sends.", {}, "pending", true));
  registry.add(message_op(kReceiveWait, "Waits for what another rank sends.", {"pending"}, "y", true));
}

ValueId send(Graph& graph, ValueId x, int64_t peer, int64_t tag, const std::string& name) {
  return graph.add(kSend, {x}, {{"peer", peer}, {"tag", tag}}, name);
}

ValueId receive(Graph& graph, int64_t peer, int64_t tag, const TensorType& type, const std::string& name) {
  const Attributes attributes{
      {"peer", peer}, {"tag", tag}, {"shape", type.shape.dims()}, {"dtype", std::string(name_of(type.dtype))}};
  return graph.add(kReceive, {}, attributes, name);
}

}  // namespace weft::ops
