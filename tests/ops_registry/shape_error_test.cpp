// A wrong call of any op is an Error that names the op: never a crash, never a graph that cannot run.
#include <cmath>
#include <limits>
#include <set>

#include "tests/ops_registry/example_cases.h"

namespace weft::registry_tests {
namespace {

class WrongCall : public ::testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }

  /// The message of the error, which must name the op; "" where the call is accepted.
  std::string message_for(const OpExample& call) const {
    try {
      build_graph(op(), call);
      return "";
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
      EXPECT_NE(std::string(error.what()).find("[" + op().name + "]"), std::string::npos) << error.what();
      return error.what();
    }
  }
  /// Any error is well; what is accepted must give tensors, and run.
  void expect_error_or_runs(const OpExample& call) const {
    if (message_for(call) != "") return;
    const NodeSignature node = build_graph(op(), call).signature();
    for (const TensorType& type : node.outputs) EXPECT_TRUE(has_bounded_size(type)) << to_string(type);
    EXPECT_NO_THROW(evaluate_node(node, draw_inputs(op(), call, 1), reference_backend()));
  }
  /// Calls visit(call, i) with a copy of each example for each of its operands, for visit to spoil operand i.
  template <typename Visit>
  void for_each_operand(Visit&& visit) const {
    for (const OpExample& example : op().examples)
      for (size_t i = 0; i < example.inputs.size(); ++i) {
        SCOPED_TRACE("example '" + example.label + "', input " + std::to_string(i));
        visit(example, i);
      }
  }
};
INSTANTIATE_TEST_SUITE_P(Ops, WrongCall, ::testing::ValuesIn(all_ops()), op_name);

TEST_P(WrongCall, NumberOfOperands) {
  const std::vector<std::string>& names = op().inputs;
  const bool any_number = !names.empty() && names.back().ends_with("...");
  size_t required = 0;
  for (const std::string& name : names) required += name.ends_with("?") ? 0u : 1u;
  for (OpExample call : op().examples) {
    SCOPED_TRACE(call.label);
    call.inputs.resize(names.size() + 1, {DType::f32, {2, 3}, {}});
    if (!any_number) {
      EXPECT_NE(message_for(call), "") << "too many";
    }
    if (names.empty()) continue;
    call.inputs.resize(required - 1);
    EXPECT_NE(message_for(call), "") << "too few";
    call.inputs.clear();
    EXPECT_NE(message_for(call), "") << "none";
  }
}

/// Ops that take tensors of any rank, at least in one of their operands.
bool takes_any_rank(const OpDef& op, const OpExample& call) {
  static const std::set<std::string> others{"reduce_prod",      "reduce_prod_backward",
                                            "reduce_sum",       "reduce_mean",
                                            "reduce_max",       "reduce_min",
                                            "one_hot",          "argmax",
                                            "cumulative_sum",   "softmax",
                                            "log_softmax",      "matmul",
                                            "layer_norm",       "cast",
                                            "reorder",          "embedding",
                                            "concat",           "dropout",
                                            "causal_mask",      "squared_norm",
                                            "all_reduce_start", "all_reduce_wait",
                                            "all_gather",       "all_gather_start",
                                            "all_gather_wait",  "all_to_all",
                                            "pack_signs",       "own_part",
                                            "top_k_select",     "take",
                                            "modulo",           "shift_left",
                                            "shift_right",      "top_k",
                                            "gather_nd",        "scatter_nd",
                                            "quantize_linear",  "dequantize_linear",
                                            "requantize",       "quantized_affine"};
  if (op.name == "reshape") {  // with an open dimension
    const auto& dims = std::get<std::vector<int64_t>>(call.attributes.values().at("shape"));
    return std::count(dims.begin(), dims.end(), -1) > 0;
  }
  if (op.name.ends_with("_matmul")) return true;  // of integers
  for (const char* prefix : {"bitwise_", "logical_", "reduce_scatter", "broadcast_", "reduce_to_root", "send",
                             "receive_wait"})  // collectives and their halves
    if (op.name.starts_with(prefix)) return true;
  return op.layout_rule == LayoutRule::elementwise || others.contains(op.name);
}

TEST_P(WrongCall, OneMoreDimension) {
  for_each_operand([&](OpExample call, size_t i) {
    const Shape shape = call.inputs[i].shape;
    for (const int64_t at : {0, shape.rank()}) {
      std::vector<int64_t> dims = shape.dims();
      dims.insert(dims.begin() + at, 2);
      call.inputs[i].shape = Shape(dims);
      if (!takes_any_rank(op(), call)) {
        EXPECT_NE(message_for(call), "") << "accepts " << to_string(call.inputs[i]);
      }
      expect_error_or_runs(call);
    }
  });
}

TEST_P(WrongCall, OtherSizes) {
  for_each_operand([&](OpExample call, size_t i) {
    const Shape shape = call.inputs[i].shape;
    call.inputs[i].shape = {};
    expect_error_or_runs(call);
    if (shape.rank() == 0) return;
    call.inputs[i].shape = Shape(std::vector<int64_t>(shape.begin() + 1, shape.end()));
    expect_error_or_runs(call);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      SCOPED_TRACE("axis " + std::to_string(axis));
      call.inputs[i].shape = shape;
      call.inputs[i].shape[axis] += 1;
      expect_error_or_runs(call);
    }
  });
}

/// Ops that only move elements, or say themselves which types they convert; of one number, over numbers of any type.
bool takes_any_dtype(const OpDef& op, size_t operand) {
  static const std::set<std::string> movers{"reshape",      "transpose",     "broadcast_to",
                                            "concat",       "slice",         "pad",
                                            "cast",         "strided_slice", "strided_slice_backward",
                                            "reorder",      "renew",         "copy_to_device",
                                            "copy_to_host", "store",         "load",
                                            "all_gather",   "broadcast",     "send",
                                            "own_part",     "send_start",    "send_wait",
                                            "receive_wait", "all_to_all"};
  static const std::set<std::string> over_numbers{"negate",     "absolute",       "square",     "sign",
                                                  "reduce_sum", "reduce_prod",    "reduce_max", "reduce_min",
                                                  "argmax",     "cumulative_sum", "top_k",      "max_pool2d"};
  const bool looks_up = op.name == "take" || op.name == "gather" || op.name == "gather_nd";  // by indices
  return movers.contains(op.name) || over_numbers.contains(op.name) || (looks_up && operand == 0);
}

TEST_P(WrongCall, Dtype) {
  for_each_operand([&](OpExample call, size_t i) {
    const bool reads_integers = op().name == "fused_elementwise" && call.inputs[i].dtype == DType::i32;  // and f32
    call.inputs[i].dtype = call.inputs[i].dtype == DType::f32 ? DType::u8 : DType::f32;
    const bool compares = op().name == "equal" || op().name.starts_with("greater");  // f32 and i32
    if (!takes_any_dtype(op(), i) && !compares && !reads_integers) {
      EXPECT_NE(message_for(call), "") << "accepts " << to_string(call.inputs[i]);
    }
    expect_error_or_runs(call);
  });
}

TEST_P(WrongCall, OneOperandOfANarrowerType) {
  for_each_operand([&](OpExample call, size_t i) {
    if (call.inputs[i].dtype != DType::f32) return;
    call.inputs[i].dtype = DType::bf16;
    expect_error_or_runs(call);
  });
}

TEST_P(WrongCall, Attributes) {
  for (const OpExample& example : op().examples) {
    OpExample call = example;
    call.attributes.set("no_such_attribute", int64_t{1});
    EXPECT_NE(message_for(call), "");
    for (const AttributeSpec& spec : op().attributes) {
      call = example;
      const bool is_text = std::holds_alternative<std::string>(spec.value);
      call.attributes.set(spec.name, is_text ? AttributeValue(int64_t{1}) : AttributeValue(std::string("text")));
      EXPECT_NE(message_for(call), "") << spec.name;
    }
  }
}

// No sum or product of sizes may overflow on the way to the error.
TEST_P(WrongCall, EndlessSizesInAttributes) {
  for (const OpExample& example : op().examples)
    for (const auto& [name, value] : example.attributes.values()) {
      SCOPED_TRACE("example '" + example.label + "', attribute " + name);
      const auto* list = std::get_if<std::vector<int64_t>>(&value);
      if (list == nullptr) continue;
      for (const int64_t number : {int64_t{1} << 47, int64_t{1} << 62, std::numeric_limits<int64_t>::max()})
        for (size_t entries = 1; entries <= list->size(); ++entries) {
          OpExample call = example;
          std::vector<int64_t> numbers = *list;
          std::fill_n(numbers.begin(), entries, number);
          call.attributes.set(name, numbers);
          message_for(call);
        }
    }
}

TEST_P(WrongCall, NumbersInAttributes) {
  for (const OpExample& example : op().examples)
    for (const auto& [name, value] : example.attributes.values()) {
      SCOPED_TRACE("example '" + example.label + "', attribute " + name);
      OpExample call = example;
      for (const double number : {-7.0, 0.0, double{NAN}, double{INFINITY}}) {
        if (std::holds_alternative<double>(value)) call.attributes.set(name, number);
        expect_error_or_runs(call);
      }
      call = example;
      for (const int64_t number : {int64_t{-7}, int64_t{0}, int64_t{99}}) {
        if (std::holds_alternative<int64_t>(value)) call.attributes.set(name, number);
        if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
          call.attributes.set(name, std::vector<int64_t>(list->size(), number));
          expect_error_or_runs(call);
          call.attributes.set(name, std::vector<int64_t>(list->size() + 1, number));
        }
        expect_error_or_runs(call);
      }
    }
}

}  // namespace
}  // namespace weft::registry_tests
