// Makes graphs of an ONNX model, for given sizes of its inputs.
//
// A graph of weft is static, and a model of ONNX need not be: the sizes of its values may depend on the sizes of its
// inputs, on the numbers in them, or on numbers that only a run gives. Sizes are known when a model is lowered, and
// everything that follows from them and from the model's constants is computed then. Where that is not enough, the
// model is cut: a segment is the part of it, in the order of its nodes, that one graph holds. Behind a segment stands a
// node that the host runs, or one that is lowered once the numbers are there that it asks for. Most models are one
// segment.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/onnx/file/model.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

/// Computes a node now (Backend::evaluate): what constants decide.
using Evaluate = std::function<std::optional<std::vector<Tensor>>(const NodeSignature&, const std::vector<Tensor>&)>;

/// What is there before a segment: a value of the model that a run will bring, of this type, or that is known.
using LiveValue = std::variant<TensorType, HostValue>;

struct LowerRequest {
  size_t first_node = 0;
  std::map<std::string, LiveValue> live;  // inputs of the graph, and what earlier segments gave
  /// Tensors of the file in f32 that are parameters of the graph, or states where batch normalisation averages them;
  /// others are constants.
  std::set<std::string> parameters = {};
  bool is_training = false;  // batch normalisation by the batch's statistics, dropout
  std::function<bool(const std::string& name)> is_frozen = {};  // of a parameter; empty: none is
  std::map<std::string, std::string> input_names = {};  // what live values are called in the graph, where otherwise
  /// What makes of live values what the model reads.
  std::map<std::string, std::function<ValueId(Graph&, ValueId)>> prepare_inputs = {};
  /// What repeats numbers along several dimensions stays a node, even of constants: the graphs of two batches then
  /// differ in sizes alone.
  bool keeps_repeats = false;
};

struct Segment {
  explicit Segment(const OpRegistry& registry) : graph(registry, "onnx") {}

  Graph graph;
  std::map<std::string, std::string> inputs;   // values of the model that it reads, with the names of its inputs
  std::map<std::string, std::string> outputs;  // values of the model that it gives, with the names of its outputs
  std::map<std::string, HostValue> known;      // values that are known without a run, of those that later nodes read
  size_t next_node = 0;                        // the first that it does not hold; the number of nodes: none
  bool next_on_host = false;                   // and the host is to run it
  std::set<std::string> needed;                // whose numbers it needs
  std::map<std::string, Tensor> parameters;    // by their names in the graph, with what the file has
};

/// A model with what lowering it asks for again and again.
class LowerableModel {
 public:
  /// Normalises the model (onnx/lower/normalize.h). Error(usage) lists every operator that weft has not, with the nodes
  /// that use it.
  LowerableModel(Model model, OperatorTable operators, const OpRegistry& registry, Evaluate evaluate);

  const Model& model() const { return model_; }
  const OperatorTable& operators() const { return operators_; }
  /// Throws NeedsValue for a live value whose numbers decide shapes: try again with it known.
  Segment lower(const LowerRequest& request) const;
  /// Whether a node from `node` on reads the value, or it is an output of the model.
  bool is_read_from(const std::string& value, size_t node) const;
  /// A node of a subgraph: the host runs it.
  int64_t opset_of(const std::string& domain) const;

 private:
  Model model_;
  OperatorTable operators_;
  const OpRegistry& registry_;
  Evaluate evaluate_;
  std::map<std::string, size_t> last_use_;  // of values, by the index of a node; the number of nodes for outputs
};

/// A line per operator that weft has not: "DeformConv (2): 'a', 'b'". Subgraphs count, too.
std::vector<std::string> missing_operators(const Model& model, const OperatorTable& operators);

}  // namespace weft::onnx
