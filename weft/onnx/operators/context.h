// What the import of one node sees: its operands, its attributes, and the graph that it adds to.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/onnx/file/model.h"

namespace weft::onnx {

/// Thrown by a conversion that wants the numbers of a value that only a run gives: who lowers the model decides whether
/// the value becomes part of the plan's key, or ends a part of the model.
struct NeedsValue {
  std::string value;
};

/// Thrown by a conversion of an operator that the host runs, too, where no graph can hold this node.
struct NeedsHost {};

/// Attributes of a node with the kinds that its operator gives them. Error(data) where one is missing or of another
/// kind.
class NodeAttributes {
 public:
  NodeAttributes(const OnnxNode& node, int64_t opset) : node_(node), opset_(opset) {}

  const OnnxNode& node() const { return node_; }
  /// The version of the node's domain that the model names.
  int64_t opset() const { return opset_; }
  bool has_attribute(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t fallback) const;
  double real(const std::string& name, double fallback) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  std::vector<int64_t> integers(const std::string& name, const std::vector<int64_t>& fallback = {}) const;
  std::vector<double> reals(const std::string& name, const std::vector<double>& fallback = {}) const;
  std::vector<std::string> texts(const std::string& name) const;
  const HostValue& value_of(const std::string& name) const;
  const OnnxGraph& graph_of(const std::string& name) const;
  const ValueInfo& type_of(const std::string& name) const;
  /// 'dtype' and its like: a number of ONNX's; Error(usage) for a type that weft has not.
  DType dtype_of(const std::string& name, DType fallback) const;
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  /// Whether somebody may read it: it has a name.
  bool wants(int output) const {
    return output < output_count() && !node_.outputs[static_cast<size_t>(output)].empty();
  }

  /// Error(usage): "[Conv 'stem'] <message>".
  [[noreturn]] void fail(const std::string& message) const;

 private:
  const Attribute& find(const std::string& name) const;
  template <typename T>
  const T& get(const std::string& name, const char* kind) const;

  const OnnxNode& node_;
  int64_t opset_;
};

/// An operand while a model is lowered: in the graph, known beforehand, or both (a weight that is trained).
struct Operand {
  ValueId id{};                    // invalid: not in the graph
  std::optional<HostValue> known;  // what the file, or what it decides, says
  bool is_trained = false;         // a parameter or state of the graph: its numbers are not to be folded
  bool is_absent() const { return !id.valid() && !known; }
};

class NodeContext : public NodeAttributes {
 public:
  /// `operands` are those of the node's inputs, absent ones included; constants are added to the graph as they are
  /// asked for. Keeps references.
  NodeContext(const OnnxNode& node, int64_t opset, Graph& graph, std::vector<Operand> operands,
              bool is_training = false, std::function<bool(const std::string& name)> is_frozen = {})
      : NodeAttributes(node, opset),
        graph_(graph),
        operands_(std::move(operands)),
        is_training_(is_training),
        is_frozen_(std::move(is_frozen)) {}

  Graph& graph() { return graph_; }
  bool is_training() const { return is_training_; }
  /// Whether the input is a parameter that stays as it is.
  bool is_frozen(int input);
  int input_count() const { return static_cast<int>(operands_.size()); }
  bool has(int input) const { return input < input_count() && !operands_[static_cast<size_t>(input)].is_absent(); }
  /// In the graph. Error(data) where it is absent, Error(usage) where it is no tensor of numbers.
  ValueId value(int input);
  /// Copies, since whatever adds to the graph moves what it holds.
  TensorType type(int input);
  Shape shape(int input) { return type(input).shape; }
  DType dtype(int input) { return type(input).dtype; }
  int rank(int input) { return shape(input).rank(); }

  /// Its numbers: NeedsValue where only a run gives them.
  const Tensor& known(int input) const;
  /// nullptr where they are not known.
  const Tensor* find_known(int input) const;
  /// A known list of whole numbers, or one of them, or one real.
  std::vector<int64_t> known_integers(int input) const;
  int64_t known_integer(int input) const;
  double known_real(int input) const;
  std::vector<double> known_reals(int input) const;

  /// What the nodes that it adds are called after.
  std::string hint() const;

 private:
  const Operand& operand(int input) const;

  Graph& graph_;
  std::vector<Operand> operands_;
  const bool is_training_;
  const std::function<bool(const std::string& name)> is_frozen_;
};

/// What the host computes without a graph: what depends on data in its size, texts, sequences, and control flow.
class HostContext : public NodeAttributes {
 public:
  using RunGraph = std::function<std::vector<HostValue>(const OnnxGraph&, const std::vector<HostValue>& inputs)>;
  HostContext(const OnnxNode& node, int64_t opset, std::vector<const HostValue*> inputs, RunGraph run_graph)
      : NodeAttributes(node, opset), inputs_(std::move(inputs)), run_graph_(std::move(run_graph)) {}

  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool has(int input) const { return input < input_count() && inputs_[static_cast<size_t>(input)] != nullptr; }
  const HostValue& input(int index) const;
  const Tensor& tensor(int index) const;
  const StringTensor& strings(int index) const;
  const std::vector<HostValue>& sequence(int index) const;
  std::vector<int64_t> integers_at(int index) const;
  int64_t integer_at(int index) const;
  /// Runs a graph that the node holds, with values for its inputs; what it reads of the model around it is there.
  std::vector<HostValue> run(const OnnxGraph& graph, const std::vector<HostValue>& inputs) const {
    return run_graph_(graph, inputs);
  }

 private:
  std::vector<const HostValue*> inputs_;
  RunGraph run_graph_;
};

/// All elements as whole numbers, or as reals.
std::vector<int64_t> integers_of(const Tensor& tensor);
std::vector<double> reals_of(const Tensor& tensor);
/// A plain tensor of i64.
Tensor tensor_of(const std::vector<int64_t>& values);
/// Letters, digits, '_', '.', '/', '-': what a value of a graph may be called.
std::string graph_name(const std::string& name);

}  // namespace weft::onnx
