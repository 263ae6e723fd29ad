// What the definitions of collectives share; included by them alone.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "weft/graph/collective.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {

void add_collectives_of_parts(OpRegistry& registry);   // collective_parts.cpp
void add_collectives_with_root(OpRegistry& registry);  // collective_root.cpp
void add_message_ops(OpRegistry& registry);            // message.cpp

inline void require_reduction(const InferContext& context) {
  const std::string& reduction = context.attributes.text("reduction");
  if (reduction != "sum" && reduction != "mean")
    context.fail("reduction \"" + reduction + "\" is not known; give \"sum\" or \"mean\"");
}

inline void require_number(const InferContext& context) {
  if (context.input_count() > kMostTensorsInCollective)
    context.fail(
        fmt::format("takes {} tensors, at most {} go together", context.input_count(), kMostTensorsInCollective));
}

/// `does`: what the op does with its operands, for the message.
inline void require_type_of_first(const InferContext& context, int operand, const char* does) {
  if (context.dtype(operand) != context.dtype(0))
    context.fail(fmt::format("{} tensors of one type together, got {} and {}", does, context.describe(0),
                             context.describe(operand)));
}

/// Of what is summed.
inline void require_sums(const InferContext& context, int operand) {
  const DType dtype = context.dtype(operand);
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16)
    context.fail(fmt::format("reduces f32, bf16 and f16, got {}", context.describe(operand)));
  require_type_of_first(context, operand, "reduces");
}

/// The type in which gradients of that type can be summed on their way.
inline DType summable(DType dtype) { return dtype == DType::bf16 ? dtype : DType::f32; }

/// Of what is only moved. `does`: "gathers".
inline void require_moves(const InferContext& context, int operand, const char* does) {
  const int bits = bits_of(context.dtype(operand));
  if (bits != 16 && bits != 32)
    context.fail(fmt::format("{} elements of 2 or 4 bytes, got {}", does, context.describe(operand)));
  require_type_of_first(context, operand, does);
}

inline std::vector<TensorType> types_of_operands(const InferContext& context) {
  std::vector<TensorType> types;
  for (int operand = 0; operand < context.input_count(); ++operand)
    types.push_back(typed(context.dtype(operand), context.shape(operand)));
  return types;
}

inline AttributeSpec axis_attribute() {
  return attribute(kAxis, kDataAxis, "of the mesh, along which the ranks stand that take part");
}

inline AttributeSpec reduction_attribute() { return attribute("reduction", "mean", "over the ranks: mean, or sum"); }

/// Results may lie where operands do, each tensor in its own place.
inline void put_in_place(OpDef& op) {
  for (int tensor = 0; tensor < kMostTensorsInCollective; ++tensor) op.in_place.emplace_back(tensor, tensor);
}

/// Both halves of a collective of any number of tensors of one type; `own`: its attributes beside those of all halves.
inline OpDef half_of_collective(const char* name, std::string summary, bool is_start, const char* what,
                                const std::vector<AttributeSpec>& own) {
  OpDef op;
  op.name = name;
  op.summary = std::move(summary);
  op.inputs = {is_start ? "x..." : "pending..."};
  op.outputs = {is_start ? "pending..." : "y..."};
  op.attributes = {required_attribute("number", int64_t{0}, "of the collective in its graph"),
                   required_attribute("tensors", "", fmt::format("what is {}, for messages", what))};
  op.attributes.insert(op.attributes.end(), own.begin(), own.end());
  return op;
}

/// Of one whose results have the shapes of the operands.
inline OpDef half_that_keeps_shapes(const char* name, std::string summary, bool is_start, const char* what,
                                    const std::vector<AttributeSpec>& own,
                                    std::vector<TensorType> (*infer)(const InferContext&)) {
  OpDef op = half_of_collective(name, std::move(summary), is_start, what, own);
  op.infer = infer;
  put_in_place(op);
  const Attributes attributes{{"number", int64_t{3}}, {"tensors", "conv.weight"}};
  op.examples = {{"one tensor", {f32({3, 5})}, attributes},
                 {"vector", {f32({17})}, attributes},
                 {"three tensors", {f32({2, 3, 3, 2}), f32({7}), f32({})}, attributes}};
  return op;
}

}  // namespace weft::ops
