#include "weft/onnx/operators/operators.h"

#include <fmt/format.h>

#include "weft/base/error.h"

namespace weft::onnx {

void OperatorTable::add(const std::string& family, const std::string& op, Convert convert, RunOnHost run) {
  const bool is_new = operators_.emplace(op, Operator{family, std::move(convert), std::move(run), false, false}).second;
  check(is_new, "an operator of ONNX has two rows");
}

void OperatorTable::add_random(const std::string& family, const std::string& op, Convert convert, RunOnHost run) {
  add(family, op, std::move(convert), std::move(run));
  operators_.at(op).is_random = true;
}

const Operator* OperatorTable::find(const std::string& domain, const std::string& op) const {
  if (!domain.empty()) return nullptr;
  const auto found = operators_.find(op);
  return found == operators_.end() ? nullptr : &found->second;
}

OperatorTable standard_operators() {
  OperatorTable table;
  add_elementwise(table);
  add_comparisons(table);
  add_activations(table);
  add_shapes(table);
  add_indexing(table);
  add_reductions(table);
  add_products(table);
  add_convolutions(table);
  add_pooling(table);
  add_normalisation(table);
  add_recurrent(table);
  add_resampling(table);
  add_attention(table);
  add_constants(table);
  add_quantized(table);
  add_losses(table);
  add_sequences(table);
  add_dynamic(table);
  add_control_flow(table);
  add_sampling(table);
  add_regions(table);
  add_placing(table);
  add_signal(table);
  add_texts(table);
  add_linear_attention(table);
  return table;
}

std::string operator_reference(const OperatorTable& table) {
  std::map<std::string, std::string> families;
  for (const auto& [op, row] : table.all()) {
    std::string& list = families[row.family];
    list += fmt::format("{}{}{}", list.empty() ? "" : ", ", op, row.convert ? "" : "*");
  }
  std::string text = "| family | operators |\n|---|---|\n";
  for (const auto& [family, list] : families) text += fmt::format("| {} | {} |\n", family, list);
  return text;
}

}  // namespace weft::onnx
