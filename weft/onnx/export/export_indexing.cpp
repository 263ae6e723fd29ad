#include "weft/onnx/export/export_indexing.h"

#include <fmt/format.h>

#include "weft/onnx/export/node_parts.h"
#include "weft/onnx/file/tensor_format.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

void export_argmax(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  const std::string wide = emitter.add(
      "ArgMax", inputs(emitter, id), {{"axis", own.integer("axis")}, {"keepdims", int64_t{own.boolean("keep_dims")}}});
  emitter.add("Cast", {wide}, {{"to", int64_t{data_type_of(DType::i32)}}}, output(emitter, id));
}

void export_embedding(Emitter& emitter, NodeId id) {
  emitter.add("Gather", inputs(emitter, id), {{"axis", int64_t{0}}}, output(emitter, id));
}

void export_one_hot(Emitter& emitter, NodeId id) {
  // Indices that are no class give zeros; ONNX's negative ones would count from the end, so they are compared instead.
  const int64_t classes = attributes_of(emitter, id).integer("classes");
  const DType dtype = dtype_of_input(emitter, id, 0);
  Tensor numbers(dtype, Shape{classes});
  for (int64_t index = 0; index < classes; ++index) store_number(dtype, numbers.data(), index, index);
  const std::string column = emitter.add("Unsqueeze", {input(emitter, id, 0), emitter.integers({-1}, "axes")});
  const std::string equal = emitter.add("Equal", {column, emitter.constant(numbers, "classes")});
  const DType result = emitter.graph().type(emitter.graph().node(id).outputs[0]).dtype;
  emitter.add("Cast", {equal}, {{"to", int64_t{data_type_of(result)}}}, output(emitter, id));
}

void export_cumulative_sum(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  Tensor axis(DType::i64, Shape{});
  *axis.data_as<int64_t>() = own.integer("axis");
  emitter.add("CumSum", {input(emitter, id, 0), emitter.constant(axis, "axis")},
              {{"reverse", int64_t{own.boolean("reverse")}}, {"exclusive", int64_t{own.boolean("exclusive")}}},
              output(emitter, id));
}

/// With the node's axis.
ExportNode along_axis(const std::string& op) {
  return [op](Emitter& emitter, NodeId id) {
    emitter.add(op, inputs(emitter, id), {{"axis", attributes_of(emitter, id).integer("axis")}}, output(emitter, id));
  };
}

void export_dequantize(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  const int64_t group = own.integer("group");
  if (const int64_t wanted = first_opset_for(emitter.graph(), node_of(emitter, id)); emitter.opset() < wanted)
    emitter.fail(
        id, fmt::format("its integers want operators of version {0}; export with --opset {0} or a newer one", wanted));
  std::map<std::string, AttributeContent> attributes{{"axis", own.integer("axis")}};
  if (group > 0) attributes["block_size"] = group;
  emitter.add("DequantizeLinear", inputs(emitter, id), attributes, output(emitter, id));
}

void export_top_k(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  emitter.add_node("TopK", {input(emitter, id, 0), emitter.integers({own.integer("k")}, "k")},
                   {output(emitter, id, 0), output(emitter, id, 1)},
                   {{"axis", own.integer("axis")}, {"largest", int64_t{own.boolean("largest")}}});
}

/// The operands of a node whose second one are indices, as i64, where ONNX takes no others.
std::vector<std::string> with_wide_indices(Emitter& emitter, NodeId id) {
  std::vector<std::string> names = inputs(emitter, id);
  if (dtype_of_input(emitter, id, 1) != DType::i64)
    names[1] = emitter.add("Cast", {names[1]}, {{"to", int64_t{data_type_of(DType::i64)}}});
  return names;
}

void export_gather_nd(Emitter& emitter, NodeId id) {
  emitter.add("GatherND", with_wide_indices(emitter, id),
              {{"batch_dims", attributes_of(emitter, id).integer("batch_dims")}}, output(emitter, id));
}

/// ONNX's name of how an update joins what is there; from the versions on that know it.
std::string reduction_of(Emitter& emitter, NodeId id) {
  const std::string reduction = attributes_of(emitter, id).text("reduction");
  const bool is_extreme = reduction == "maximum" || reduction == "minimum";
  if (reduction != "none" && emitter.opset() < (is_extreme ? 18 : 16))
    emitter.fail(id, "its reduction wants operators of version 18; export with --opset 18 or a newer one");
  return reduction == "multiply" ? "mul" : is_extreme ? reduction.substr(0, 3) : reduction;
}

void export_scatter(Emitter& emitter, NodeId id, const std::string& op) {
  const Attributes& own = attributes_of(emitter, id);
  if (own.has("batch_dims") && own.integer("batch_dims") != 0)
    emitter.fail(id, "ONNX's ScatterND knows no dimensions of a batch");
  std::map<std::string, AttributeContent> attributes;
  if (op == "ScatterElements") attributes["axis"] = own.integer("axis");
  if (const std::string reduction = reduction_of(emitter, id); reduction != "none") attributes["reduction"] = reduction;
  emitter.add(op, with_wide_indices(emitter, id), attributes, output(emitter, id));
}

}  // namespace

int64_t first_opset_for(const Graph& graph, const Node& dequantize) {
  const DType dtype = graph.type(dequantize.inputs[0]).dtype;
  if (bits_of(dtype) == 2) return kOpsetOfTwoBits;
  return is_packed(dtype) || dequantize.attributes.integer("group") > 0 ? kOpsetOfGroups : 0;
}

std::map<std::string, ExportNode> indexing_exports() {
  return {
      {"argmax", export_argmax},
      {"cumulative_sum", export_cumulative_sum},
      {"dequantize_linear", export_dequantize},
      {"embedding", export_embedding},
      {"gather", along_axis("GatherElements")},
      {"gather_nd", export_gather_nd},
      {"one_hot", export_one_hot},
      {"quantize_linear", along_axis("QuantizeLinear")},
      {"scatter_elements", [](Emitter& emitter, NodeId id) { export_scatter(emitter, id, "ScatterElements"); }},
      {"scatter_nd", [](Emitter& emitter, NodeId id) { export_scatter(emitter, id, "ScatterND"); }},
      {"take", along_axis("Gather")},
      {"top_k", export_top_k},
  };
}

}  // namespace weft::onnx
