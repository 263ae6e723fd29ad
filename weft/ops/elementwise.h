// What the definitions of elementwise ops share: functions of one tensor, of two under NumPy broadcasting, and the
// derivatives that have a kernel of their own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/graph/op_def.h"
#include "weft/graph/symbolic_rule.h"

namespace weft::ops {

/// Both signs. Off centre, so that for the sizes of the examples no midpoint lies within a difference's step of 0.
inline constexpr OpExample::Range kBothSigns{-1, 1.2, true};
/// Far enough above 0 to divide by and to take logarithms of.
inline constexpr OpExample::Range kDivisor{0.5, 2};

/// Gradient of a unary op from the output's gradient dy, its input x and its output y.
using UnaryDerivative = ValueId (*)(Graph&, ValueId dy, ValueId x, ValueId y);

OpDef unary(std::string name, std::string summary, UnaryDerivative derivative, OpExample::Range range = {});
/// A unary op whose gradient is the op `backward_op` with the same attributes, of dy and the op's output or input.
enum class Keeps { input, output };
OpDef unary_with_backward(std::string name, std::string summary, std::string backward_op, Keeps keeps,
                          OpExample::Range range);
/// The gradient op of a unary one: (output_gradient, `second`), both of one shape.
OpDef backward(std::string name, std::string summary, std::string second);
/// Two floating operands of one type that broadcast; without a gradient and examples.
OpDef binary(std::string name, std::string summary);
/// The op over any numbers: of integers too, which wrap around, and of f64.
OpDef on_numbers(OpDef op);
/// One operation per element: a transcendental function counts as one too.
int64_t count_elements(const std::vector<TensorType>&, const std::vector<TensorType>& outputs, const Attributes&);

/// The shape rule over named symbols: what the shapes of any number of operands broadcast to.
std::vector<SymbolicType> infer_symbolic_elementwise(const SymbolicContext& context);

/// The op with these attributes more, and each of its examples once with each of `calls`.
OpDef with_attributes(OpDef op, const std::vector<AttributeSpec>& specs, const std::vector<Attributes>& calls);
/// The op with `check` before its shape rule.
OpDef with_check(OpDef op, void (*check)(const InferContext&));

// Parts of add_elementwise_ops, each in a file of its own.
void add_activations(OpRegistry&);
void add_arithmetic(OpRegistry&);
void add_trigonometric(OpRegistry&);

}  // namespace weft::ops
