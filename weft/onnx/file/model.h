// An ONNX model as plain data: what its file says, before anything is made of it. Nothing here knows the file's format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::onnx {

/// Version of the default domain's operators.
inline constexpr int64_t kNewestOpset = 28;

/// A tensor of texts. They are of no dtype: no kernel computes with them.
struct StringTensor {
  Shape shape;
  std::vector<std::string> values;  // row-major
};

/// What flows between nodes: a tensor, texts, a sequence of values, or an optional value that is absent. An optional
/// value that is there is the value itself.
struct HostValue {
  std::variant<Tensor, StringTensor, std::vector<HostValue>, std::monostate> content;

  HostValue() : content(std::monostate{}) {}
  HostValue(Tensor tensor) : content(std::move(tensor)) {}                      // NOLINT: a tensor is a value
  HostValue(StringTensor tensor) : content(std::move(tensor)) {}                // NOLINT: so are texts
  HostValue(std::vector<HostValue> sequence) : content(std::move(sequence)) {}  // NOLINT: and sequences
  const Tensor* tensor() const { return std::get_if<Tensor>(&content); }
  const StringTensor* strings() const { return std::get_if<StringTensor>(&content); }
  const std::vector<HostValue>* sequence() const { return std::get_if<std::vector<HostValue>>(&content); }
  bool is_absent() const { return std::holds_alternative<std::monostate>(content); }
};
/// "f32[2,3]", "strings[4]", "sequence of 3", "absent"
std::string describe(const HostValue& value);

/// A dimension as the file states it: a number, a name, or nothing.
struct Dimension {
  std::optional<int64_t> size;
  std::string symbol;  // "batch"; empty where the dimension has a size or no name
};

/// What the file says of an input, an output or another value.
struct ValueInfo {
  enum class Kind { unknown, tensor, strings, sequence, optional } kind = Kind::unknown;
  std::string name;
  std::optional<DType> dtype;                   // of a tensor, where it is stated
  std::optional<std::vector<Dimension>> shape;  // nullopt: of any rank
  std::string unsupported;                      // "float8e4m3fn", "complex64": a type that weft has not
};
/// "f32[batch,3,224,224]"
std::string describe(const ValueInfo& info);
/// Whether a value of this shape is what the file says, whatever its open dimensions are.
bool fits(const ValueInfo& info, const Shape& shape);

struct OnnxGraph;

struct Attribute {
  std::variant<std::monostate, int64_t, float, std::string, HostValue, std::shared_ptr<const OnnxGraph>,
               std::vector<int64_t>, std::vector<float>, std::vector<std::string>, std::vector<HostValue>, ValueInfo>
      value;
  std::string refers_to;    // in a function: the attribute of its caller
  std::string unsupported;  // why its value cannot be used: "a sparse tensor"
};

struct OnnxNode {
  std::string name;    // may be empty
  std::string op;      // "Conv"
  std::string domain;  // empty: the default one, ai.onnx
  std::string overload;
  std::vector<std::string> inputs, outputs;  // empty names: absent
  std::map<std::string, Attribute> attributes;
};
/// "Conv 'stem'": the op with the node's name, or that of its first output.
std::string describe(const OnnxNode& node);
/// Of the default domain, called after its one output.
OnnxNode node_with_output(const std::string& op, std::vector<std::string> inputs, const std::string& output);

/// Names that a node reads: its inputs, and those that its subgraphs take from around them.
std::set<std::string> names_read_by(const OnnxNode& node);

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;  // in topological order
  std::vector<ValueInfo> inputs, outputs;
  std::map<std::string, ValueInfo> values;  // of inner values, where the file says something
  std::map<std::string, HostValue> initializers;
  std::map<std::string, std::string> unusable_initializers;  // with the reason: "has type float8e4m3fn"
};

/// Names of dimensions that inputs without a value in the file leave open, each once.
std::vector<std::string> open_dimensions(const OnnxGraph& graph);

struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes;  // all, those without a default with an empty value
  std::vector<OnnxNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct Model {
  std::string path;
  int64_t ir_version = 0;
  std::string producer;                   // "pytorch 2.13.0"
  std::map<std::string, int64_t> opsets;  // version by domain; the default domain is ""
  std::map<std::string, std::string> metadata;
  OnnxGraph graph;
  std::vector<Function> functions;

  /// Of the default domain; Error(data) where the file names none.
  int64_t opset() const;
};

}  // namespace weft::onnx
