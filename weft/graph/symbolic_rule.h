// What a shape rule over symbols sees, and the helpers in which such rules are written.
#pragma once

#include <string>
#include <vector>

#include "weft/graph/symbolic_graph.h"

namespace weft {

struct SymbolicContext {
  const OpDef& op;
  const std::string& node_name;
  const std::vector<SymbolicType>& inputs;
  const std::vector<std::string>& input_names;
  const SymbolicAttributes& attributes;  // as given

  const std::vector<Expression>& dims(int input) const { return inputs[static_cast<size_t>(input)].dims; }
  /// The attribute or its default, as an expression or a list of them.
  Expression integer(const std::string& name) const;
  std::vector<Expression> integers(const std::string& name) const;
  /// The attribute or its default, of those that hold no symbol; a shape error where it does.
  AttributeValue plain(const std::string& name) const;
  /// "'image' [N,3,H,W]", for messages.
  std::string describe(int input) const;
  /// Throws Error(shape): "[matmul] 'scores': <message>".
  [[noreturn]] void fail(const std::string& message) const;
  /// The axis in [0, rank of the operand), where negative ones count from the end.
  int axis(int input, const std::string& attribute) const;
  /// The types that the op's ordinary rule gives for operands of these shapes, which stand for the symbolic ones.
  std::vector<TensorType> infer_with(const std::vector<Shape>& shapes) const;
};

}  // namespace weft
