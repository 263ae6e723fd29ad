#include "weft/passes/integer/constants.h"

#include "weft/graph/constant_node.h"
#include "weft/tensor/element.h"

namespace weft::passes {

std::optional<Tensor> constant_value(const Graph& graph, const Backend& backend, ValueId value, int64_t most_bytes) {
  const Node* node = graph.producer(value);
  if (node == nullptr || graph.type(value).bytes() > most_bytes) return std::nullopt;
  if (is_constant_tensor(*node)) return constant_of(*node)->tensor();
  if (node->op->name == "constant") {
    Tensor filled(graph.type(value));
    const auto whole = node->attributes.exact_integer("value");
    for (int64_t index = 0; index < filled.elements(); ++index) {
      if (whole)
        store_number(filled.dtype(), filled.data(), index, *whole);
      else
        store_element(filled.dtype(), filled.data(), index, node->attributes.real("value"));
    }
    return filled;
  }
  if (node->inputs.empty() || node->op->is_update || node->outputs.size() != 1) return std::nullopt;
  std::vector<Tensor> operands;
  for (const ValueId input : node->inputs) {
    auto operand = constant_value(graph, backend, input, most_bytes);
    if (!operand) return std::nullopt;
    operands.push_back(*std::move(operand));
  }
  if (node->op->is_view) return operands[0].reinterpreted(graph.type(value));
  const auto results = backend.evaluate(signature_of(graph, graph.value(value).producer), operands);
  return results ? std::optional(results->front()) : std::nullopt;
}

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> numbers;
  for (int64_t index = 0; index < tensor.elements(); ++index)
    numbers.push_back(load_element(tensor.dtype(), tensor.data(), index));
  return numbers;
}

}  // namespace weft::passes
