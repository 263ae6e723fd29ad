// Small helpers in which the op definitions of this folder are written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/base/names.h"
#include "weft/graph/graph.h"
#include "weft/ops/ops.h"

namespace weft::ops {

inline AttributeSpec required_attribute(std::string name, AttributeValue example, std::string help) {
  return {std::move(name), std::move(example), true, std::move(help)};
}
inline AttributeSpec attribute(std::string name, AttributeValue value, std::string help) {
  return {std::move(name), std::move(value), false, std::move(help)};
}

/// Classes of work: OpDef::work. Elementwise ops need none.
namespace work {
inline constexpr const char* kCasts = "casts";
inline constexpr const char* kCommunication = "communication";
inline constexpr const char* kConvolution = "convolutions, forward";
inline constexpr const char* kConvolutionData = "convolutions, gradient of the data";
inline constexpr const char* kConvolutionWeights = "convolutions, gradient of the weights";
inline constexpr const char* kCopies = "copies";
inline constexpr const char* kElementwise = "elementwise";
inline constexpr const char* kFile = "file";
inline constexpr const char* kLookUps = "look-ups";
inline constexpr const char* kLosses = "losses";
inline constexpr const char* kMatrixProducts = "matrix products";
inline constexpr const char* kNormalisation = "normalisation";
inline constexpr const char* kPooling = "pooling";
inline constexpr const char* kRecurrent = "recurrent layers";
inline constexpr const char* kReductions = "reductions";
inline constexpr const char* kReorders = "reorders";
inline constexpr const char* kSoftmax = "softmax";
inline constexpr const char* kUpdates = "updates";
}  // namespace work

inline OpDef of_work(const char* work, OpDef op) {
  op.work = work;
  return op;
}

/// The last operand, i64[], of an op that may be split among ranks: the place of this part among equal ones.
inline void require_place(const InferContext& context, int operand) {
  if (context.input_count() <= operand) return;
  context.require_rank(operand, 0);
  context.require_dtype(operand, DType::i64);
}

inline std::vector<int64_t> to_list(const Pair& pair) { return {pair[0], pair[1]}; }

inline TensorType typed(DType dtype, Shape shape) { return {dtype, std::move(shape), {}}; }
inline TensorType f32(Shape shape) { return {DType::f32, std::move(shape), {}}; }
inline TensorType i32(Shape shape) { return {DType::i32, std::move(shape), {}}; }
inline TensorType i64(Shape shape) { return {DType::i64, std::move(shape), {}}; }

/// The operand's type, in which the node computes: a network's, or f64.
inline DType require_real(const InferContext& context, int input) {
  return context.dtype(input) == DType::f64 ? DType::f64 : context.require_compute_dtype(input);
}

/// Of ops that sum many numbers: the sum need not be rounded to the operands' type.
inline AttributeSpec result_dtype_attribute() {
  return attribute("result_dtype", "same", "type of the result: same, that of the operands, or f32");
}
inline DType result_dtype(const InferContext& context, DType operands) {
  const std::string& text = context.attributes.text("result_dtype");
  if (text != "same" && text != "f32")
    context.fail("result_dtype \"" + text + "\" is not known; give \"same\" or \"f32\"");
  return text == "same" ? operands : DType::f32;
}

/// The type that the attribute "dtype" names.
inline DType require_dtype_name(const InferContext& context) {
  const std::string& name = context.attributes.text("dtype");
  const auto dtype = parse_dtype(name);
  if (dtype) return *dtype;
  std::vector<std::string> known;
  for (const DType candidate : all_dtypes()) known.emplace_back(name_of(candidate));
  context.fail("dtype \"" + name + "\" is not known" + suggestion(name, known));
}

/// The value itself where it has the type, else a cast.
inline ValueId as_dtype(Graph& graph, ValueId x, DType dtype) {
  return graph.type(x).dtype == dtype ? x : cast(graph, x, dtype);
}

/// A copy: adding nodes moves the graph's own.
inline Attributes attributes_of(const GradContext& context) { return context.graph.node(context.node).attributes; }

/// "stem.weight_gradient" for the node 'stem' and the operand "weight".
inline std::string gradient_name(const GradContext& context, const std::string& operand) {
  return context.graph.node_name(context.node) + "." + operand + "_gradient";
}

}  // namespace weft::ops
