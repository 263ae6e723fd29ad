// What an op is, apart from any kernel: name, operands, attributes, shape rule, gradient rule, cost, examples.
// Documentation, the text format, gradient checks and coverage tests are all derived from these definitions.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/graph/attributes.h"
#include "weft/graph/dimension_rule.h"
#include "weft/graph/ids.h"
#include "weft/tensor/tensor.h"

namespace weft {

class Graph;
struct OpDef;
struct SymbolicContext;
struct SymbolicType;

/// One attribute of an op. Without a default it is required. The default's kind is the attribute's kind.
struct AttributeSpec {
  std::string name;
  AttributeValue value;  // the default, or an example of the right kind where required
  bool required = false;
  std::string help;
  /// Of a real: an integer that no double equals stays an integer (Attributes::exact_integer).
  bool keeps_integers = false;
};

/// What a shape rule sees. Input layouts are ignored: shape rules speak of logical shapes.
struct InferContext {
  const OpDef& op;
  const std::string& node_name;
  const std::vector<TensorType>& inputs;
  const std::vector<std::string>& input_names;  // value names, for messages
  const Attributes& attributes;

  const Shape& shape(int input) const { return inputs[static_cast<size_t>(input)].shape; }
  DType dtype(int input) const { return inputs[static_cast<size_t>(input)].dtype; }
  int input_count() const { return static_cast<int>(inputs.size()); }
  /// "'image' (128,1,28,28)", for messages.
  std::string describe(int input) const;
  /// Throws Error(shape): "[conv2d] 'stem': <message>".
  [[noreturn]] void fail(const std::string& message) const;
  void require_rank(int input, int rank) const;
  void require_dtype(int input, DType dtype) const;
  /// The type T in which the node computes: the operand's, which is f32 or half as wide (bf16, f16).
  DType require_compute_dtype(int input) const;
  /// The operand's type, which is anything that can be computed with: all but booleans.
  DType require_number(int input) const;
  /// The operand's type, which is a type of integers.
  DType require_integer(int input) const;
  void require_same_shape(int input, int other) const;
};

/// What a gradient rule sees. It adds nodes to the graph and returns one gradient per input of the node,
/// an invalid ValueId where an input has none (labels, indices).
struct GradContext {
  Graph& graph;
  NodeId node;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<ValueId> output_gradients;  // invalid where an output does not influence the loss
};

/// One example call, from which the tests derive everything they check about the op.
struct OpExample {
  std::string label;
  std::vector<TensorType> inputs;
  Attributes attributes = {};
  /// Values are drawn uniformly from [low, high) for floating inputs, integers in [low, high) for the others.
  struct Range {
    double low = -1, high = 1;
    /// Floating values are the midpoints of equal parts of the range, shuffled: no two are close, so that finite
    /// differences never change which one is the maximum, or on which side of a kink it lies.
    bool spread = false;
  };
  std::vector<Range> ranges = {};  // one per input; missing ones are [-1, 1)
};

enum class LayoutRule {
  plain,        // every operand is row-major
  elementwise,  // operands of the output's full shape share its layout, whatever it is; smaller operands are plain
  channelwise,  // rank-4 operands share one layout, whatever it is; operands of lower rank are plain
  kernel,       // the backend is asked what its kernel wants
};

/// What may become of a node of a graph in f32 where the network is to compute in a narrower type T (bf16, f16).
enum class PrecisionRule {
  full,     // stays f32: losses, statistics, updates
  follow,   // bound by memory: computes in T where its activations are T
  reduced,  // worth casting for: convolutions and matrix products
};
std::string_view name_of(PrecisionRule rule);

/// What an output of an op is on a rank where the op's operands are split by their elements (graph/sharding.h): those
/// of one shape alike, beside single numbers that every rank has.
enum class OfSplit {
  elements,  // the same elements of the output
  sum,       // a term of the sum over the ranks
  all,       // 1 or 0: the output is 1 where it is 1 on all ranks, else 0
};

struct OpDef {
  std::string name;
  std::string summary;              // one sentence for `weft ops`
  std::vector<std::string> inputs;  // names; a last "x..." takes any number (>= 1), "x?" may be absent (at the end)
  std::vector<std::string> outputs;
  std::vector<AttributeSpec> attributes;

  std::function<std::vector<TensorType>(const InferContext&)> infer;
  /// Null: not differentiable; autodiff stops with an error where a gradient would have to pass.
  std::function<std::vector<ValueId>(GradContext&)> gradient;
  /// Floating-point operations of one call (a multiply-add counts 2); null: none worth counting.
  std::function<int64_t(const std::vector<TensorType>& inputs, const std::vector<TensorType>& outputs,
                        const Attributes&)>
      flops;

  /// The class that reports sum it under, such as "pooling" (those of weft's ops: weft/ops/define.h); empty:
  /// "elementwise" by the layout rule, else "other".
  std::string work;
  LayoutRule layout_rule = LayoutRule::plain;
  PrecisionRule precision = PrecisionRule::full;
  /// Operands that stay f32 whatever type the others have: parameters and statistics of normalisation.
  std::vector<int> f32_inputs;
  /// Pairs (output, input) whose buffers may be one: a kernel reads each input element before it writes over it.
  std::vector<std::pair<int, int>> in_place;
  /// The output is the input's memory under another shape: nothing is computed (reshape of a plain tensor).
  bool is_view = false;
  /// Per output, the last one for all that follow; empty: the op wants whole tensors. What is split may end with zeros.
  std::vector<OfSplit> of_split = {};
  /// Null: the op wants whole tensors, along a dimension. Else what can be split together.
  std::function<DimensionRule(const DimensionContext&)> dimensions = {};
  /// Changes attributes that say how large something is, or where it lies, to those of a part. Null: none does.
  std::function<void(Attributes&, const PartContext&)> of_part = {};
  /// Along the labels `composed`: results in the order of the op's, whole where they lack the label.
  std::function<std::vector<ValueId>(ComposedContext&)> in_parts = {};
  /// Reads state and writes its successor: outputs[i] replaces the state that `in_place` pairs it with.
  bool is_update = false;

  /// The shape rule over named symbols (graph/symbolic_graph.h). Null: the op has none, results are to be written.
  std::function<std::vector<SymbolicType>(const SymbolicContext&)> infer_symbolic = {};

  std::vector<OpExample> examples;
  double gradient_tolerance = 2e-2;  // relative, of finite differences in f32, central, step 1e-2 of the range
  double kernel_tolerance = 1e-4;    // relative, of a fast kernel against the reference, to the largest output
};

/// All ops by name. Built once by ops/all.cpp and passed to those who need it.
class OpRegistry {
 public:
  void add(OpDef op);
  /// Of an op that is there.
  void set_symbolic_rule(const std::string& op, std::function<std::vector<SymbolicType>(const SymbolicContext&)> rule);
  const OpDef* find(const std::string& name) const;
  /// Error(usage) with the nearest name.
  const OpDef& get(const std::string& name) const;
  const std::map<std::string, OpDef>& all() const { return ops_; }

 private:
  std::map<std::string, OpDef> ops_;
};

/// Attributes with defaults filled in; Error(usage) for unknown or missing names and wrong kinds.
/// Integers are accepted where a real is wanted.
Attributes complete_attributes(const OpDef& op, const std::string& node_name, const Attributes& given);

}  // namespace weft
