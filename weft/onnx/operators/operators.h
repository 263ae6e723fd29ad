// The operators of ONNX that weft imports: a table, filled by one file per family.
//
// To add one, write its conversion in the file of its family, with functions of ops/ops.h, and give it a row there.
// What ONNX's versions changed is decided inside, by NodeContext::opset().
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weft/onnx/operators/context.h"

namespace weft::onnx {

/// Adds what the node computes to the graph: a value per output, an invalid one where the node has no name for it.
using Convert = std::function<std::vector<ValueId>(NodeContext&)>;
/// Computes the node now, from values.
using RunOnHost = std::function<std::vector<HostValue>(const HostContext&)>;

struct Operator {
  std::string family = {};  // "convolution", for tables
  Convert convert = {};     // empty: no graph can hold it; throws NeedsHost where none can with these attributes
  RunOnHost run = {};       // empty: only a graph computes it
  bool is_random = false;   // never folded
  /// What it makes of known numbers of 8 bits is not folded: passes compute with the integers.
  bool keeps_integers = false;
};

class OperatorTable {
 public:
  /// Of ONNX's default domain.
  void add(const std::string& family, const std::string& op, Convert convert, RunOnHost run = {});
  void add_random(const std::string& family, const std::string& op, Convert convert, RunOnHost run = {});
  /// Of an operator that is there.
  void keep_integers(const std::string& op) { operators_.at(op).keeps_integers = true; }
  void add_on_host(const std::string& family, const std::string& op, RunOnHost run) {
    add(family, op, {}, std::move(run));
  }
  /// nullptr where there is none of that name in the domain.
  const Operator* find(const std::string& domain, const std::string& op) const;
  const std::map<std::string, Operator>& all() const { return operators_; }

 private:
  std::map<std::string, Operator> operators_;
};

/// All that weft has.
OperatorTable standard_operators();

/// The table as Markdown, a row per family: docs/onnx.md has it. Operators that the host runs have a star.
std::string operator_reference(const OperatorTable& table);

// The families, one file each.
void add_elementwise(OperatorTable& table);
void add_comparisons(OperatorTable& table);
void add_activations(OperatorTable& table);
void add_shapes(OperatorTable& table);
void add_indexing(OperatorTable& table);
void add_reductions(OperatorTable& table);
void add_products(OperatorTable& table);
void add_convolutions(OperatorTable& table);
void add_pooling(OperatorTable& table);
void add_normalisation(OperatorTable& table);
void add_recurrent(OperatorTable& table);
void add_resampling(OperatorTable& table);
void add_attention(OperatorTable& table);
void add_constants(OperatorTable& table);
void add_quantized(OperatorTable& table);
void add_losses(OperatorTable& table);
void add_sequences(OperatorTable& table);
void add_dynamic(OperatorTable& table);
void add_control_flow(OperatorTable& table);
void add_sampling(OperatorTable& table);
void add_regions(OperatorTable& table);
void add_placing(OperatorTable& table);
void add_signal(OperatorTable& table);
void add_texts(OperatorTable& table);
void add_linear_attention(OperatorTable& table);

}  // namespace weft::onnx
