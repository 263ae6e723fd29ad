// What the export of one node sees: its operands and attributes, and the ONNX graph that it adds nodes to.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/onnx/export/export_graph.h"

namespace weft::onnx {

/// A size that may depend on that of the batch, N: constant + factor N.
struct Size {
  int64_t constant = 0, factor = 0;
  bool is_fixed() const { return factor == 0; }
  friend bool operator==(const Size&, const Size&) = default;
};

using AttributeContent = decltype(Attribute::value);

class Emitter {
 public:
  explicit Emitter(const ExportRequest& request);

  const Graph& graph() const { return request_.graph; }
  int64_t opset() const { return request_.opset; }
  OnnxGraph& result() { return result_; }

  /// The name that a value of the graph has in the model.
  std::string name(ValueId value) const;
  void rename(ValueId value, const std::string& name) { names_[value.index] = name; }
  /// The node is written already, by another one.
  void leave_out(NodeId node) { left_out_.insert(node.index); }
  bool is_left_out(NodeId node) const { return left_out_.contains(node.index); }
  /// A name that nothing has yet.
  std::string fresh(const std::string& hint);

  /// Adds a node with one output, which it names; a fresh name where `output` is empty.
  std::string add(const std::string& op, const std::vector<std::string>& inputs,
                  const std::map<std::string, AttributeContent>& attributes = {}, const std::string& output = "");
  void add_node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                const std::map<std::string, AttributeContent>& attributes = {});

  /// Constants of the model.
  std::string constant(const Tensor& tensor, const std::string& hint = "constant");
  std::string integers(const std::vector<int64_t>& values, const std::string& hint = "sizes");
  std::string number(double value, DType dtype, const std::string& hint = "number");
  /// A vector of i64, computed from the batch where it depends on it.
  std::string sizes(const std::vector<Size>& values);

  /// The dimensions of a value, and integers of a node's attribute.
  std::vector<Size> shape(ValueId value) const;
  std::vector<Size> attribute_sizes(NodeId node, const std::string& name) const;

  /// Numbers of a value that parameters and constants alone decide: the parameter itself, its sums and shapes.
  std::optional<Tensor> known(ValueId value) const;

  [[noreturn]] void fail(NodeId node, const std::string& message) const;

 private:
  Size size_of(int64_t value, int64_t other) const;
  std::string batch_size();

  const ExportRequest& request_;
  OnnxGraph result_;
  std::map<int32_t, std::string> names_;
  std::map<std::string, int> used_;
  std::set<int32_t> left_out_;
  std::string batch_;  // a vector of one number, N
};

}  // namespace weft::onnx
