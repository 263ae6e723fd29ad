#include "weft/cpu/reference/integer.h"

#include <cmath>
#include <map>
#include <string>
#include <type_traits>

#include "weft/base/error.h"
#include "weft/cpu/reference/reference.h"
#include "weft/ops/scalar_math.h"

namespace weft::reference {
namespace {

/// Operations of two numbers of a type, or of one that does not read b. `bits` is the width of the elements.
template <typename T>
using Operation = T (*)(T a, T b, int bits);

// Sums and products are those of the unsigned numbers of the same bits: they wrap around.
template <typename T>
T add(T a, T b, int) {
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename T>
T subtract(T a, T b, int) {
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <typename T>
T multiply(T a, T b, int) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <typename T>
T negate(T a, T, int bits) {
  return subtract(T{0}, a, bits);
}
/// Towards zero. The smallest number over -1 wraps around to itself.
template <typename T>
T divide(T a, T b, int bits) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return negate(a, T{}, bits);
  return a / b;
}
/// With the sign of a.
template <typename T>
T remainder(T a, T b, int) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return a % b;
}
/// With the sign of b.
template <typename T>
T modulo(T a, T b, int bits) {
  const T rest = remainder(a, b, bits);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <typename T>
T absolute(T a, T, int bits) {
  return a < 0 ? negate(a, T{}, bits) : a;
}
template <typename T>
T sign(T a, T, int) {
  return static_cast<T>(a > 0 ? 1 : a < 0 ? -1 : 0);
}
/// By squaring. To a negative power: cut off towards zero, and 0 of 0, as it is where divide divides by 0.
template <typename T>
T pow(T a, T b, int bits) {
  if (b < 0) {
    if (a == T{1}) return a;
    if constexpr (std::is_signed_v<T>)
      if (a == -1) return b % 2 == 0 ? T{1} : a;
    return 0;
  }
  T result = 1;
  for (T factor = a; b != 0; b /= 2) {
    if (b % 2 != 0) result = multiply(result, factor, bits);
    factor = multiply(factor, factor, bits);
  }
  return result;
}
template <typename T>
T shift_left(T a, T b, int bits) {
  return b < 0 || b >= static_cast<T>(bits) ? T{0} : static_cast<T>(static_cast<uint64_t>(a) << b);
}
template <typename T>
T shift_right(T a, T b, int bits) {
  if (b < 0 || b >= static_cast<T>(bits)) return a < 0 ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> b);
}

/// What an integer op of this name does; null where there is none.
template <typename T>
Operation<T> integer_operation(const std::string& op, bool truncated) {
  if (op == "modulo") return truncated ? &remainder<T> : &modulo<T>;
  static const std::map<std::string, Operation<T>> operations{
      {"add", &add<T>},
      {"subtract", &subtract<T>},
      {"multiply", &multiply<T>},
      {"divide", &divide<T>},
      {"negate", &negate<T>},
      {"absolute", &absolute<T>},
      {"sign", &sign<T>},
      {"shift_left", &shift_left<T>},
      {"shift_right", &shift_right<T>},
      {"square", [](T a, T, int bits) { return multiply(a, a, bits); }},
      {"pow", &pow<T>},
      {"maximum", [](T a, T b, int) { return a > b ? a : b; }},
      {"minimum", [](T a, T b, int) { return a < b ? a : b; }},
      {"bitwise_and", [](T a, T b, int) { return static_cast<T>(a & b); }},
      {"bitwise_or", [](T a, T b, int) { return static_cast<T>(a | b); }},
      {"bitwise_xor", [](T a, T b, int) { return static_cast<T>(a ^ b); }},
      {"bitwise_not", [](T a, T, int) { return static_cast<T>(~a); }},
      {"logical_and", [](T a, T b, int) { return static_cast<T>(a & b); }},
      {"logical_or", [](T a, T b, int) { return static_cast<T>(a | b); }},
      {"logical_xor", [](T a, T b, int) { return static_cast<T>(a ^ b); }},
      {"logical_not", [](T a, T, int) { return static_cast<T>(a == 0 ? 1 : 0); }},
      {"equal", [](T a, T b, int) { return static_cast<T>(a == b ? 1 : 0); }},
      {"greater", [](T a, T b, int) { return static_cast<T>(a > b ? 1 : 0); }},
      {"greater_equal", [](T a, T b, int) { return static_cast<T>(a >= b ? 1 : 0); }},
  };
  const auto found = operations.find(op);
  return found == operations.end() ? nullptr : found->second;
}

/// The same in double.
std::function<double(double, double)> real_operation(const NodeSignature& node) {
  if (node.op->name == "modulo") {
    const bool truncated = node.attributes.boolean("truncated");
    return [truncated](double a, double b) {
      const double rest = std::fmod(a, b);
      return !truncated && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    };
  }
  ops::ScalarInstruction instruction{};
  check(ops::scalar_instruction(node.op->name, node.attributes, instruction), "an op of reals has an instruction");
  const auto literals = ops::scalar_literals(instruction, node.attributes);
  return [op = instruction.op, literals](double a, double b) {
    return ops::evaluate_scalar_op(op, a, b, 0.0, literals[0], literals[1]);
  };
}

struct Operands {
  std::vector<StridedView> views;
  std::vector<DType> types;

  explicit Operands(const NodeSignature& node) {
    for (const TensorType& type : node.inputs) {
      views.push_back(broadcast_view(type.shape, node.outputs[0].shape));
      types.push_back(type.dtype);
    }
  }
  template <typename T>
  T load(const KernelArguments& call, size_t operand, int64_t position) const {
    if (operand >= types.size()) return T{};
    return load_as<T>(types[operand], call.inputs[operand], views[operand](position));
  }
};

/// The chosen operand's bits.
KernelBody prepare_where(const NodeSignature& node) {
  return [operands = Operands(node), out = node.outputs[0]](const KernelArguments& call) {
    clear_bits_behind(out, call.outputs[0]);
    for (int64_t i = 0; i < out.elements(); ++i) {
      const size_t chosen = operands.load<uint64_t>(call, 0, i) != 0 ? 1 : 2;
      copy_element(out.dtype, call.inputs[chosen], operands.views[chosen](i), call.outputs[0], i);
    }
  };
}

}  // namespace

bool is_typed(const NodeSignature& node) {
  const bool compares = node.outputs[0].dtype == DType::f32;
  for (const TensorType& type : node.inputs) {
    const bool is_network = type.dtype == DType::f32 || type.dtype == DType::bf16 || type.dtype == DType::f16;
    if (!is_network && !(compares && type.dtype == DType::i32)) return true;
  }
  return false;
}

KernelBody prepare_typed(const NodeSignature& node) {
  if (node.op->name == "where") return prepare_where(node);
  return visit_number(node.inputs[0].dtype, [&](auto zero) -> KernelBody {
    using T = decltype(zero);
    const TensorType& out = node.outputs[0];
    if constexpr (std::is_same_v<T, double>) {
      return [operands = Operands(node), out, operation = real_operation(node)](const KernelArguments& call) {
        clear_bits_behind(out, call.outputs[0]);
        for (int64_t i = 0; i < out.elements(); ++i)
          store_number(out.dtype, call.outputs[0], i,
                       operation(operands.load<double>(call, 0, i), operands.load<double>(call, 1, i)));
      };
    } else {
      const bool truncated = node.op->name == "modulo" && node.attributes.boolean("truncated");
      const Operation<T> operation = integer_operation<T>(node.op->name, truncated);
      check(operation != nullptr, "an op of integers has an operation");
      return [operands = Operands(node), out, operation,
              bits = bits_of(node.inputs[0].dtype)](const KernelArguments& call) {
        clear_bits_behind(out, call.outputs[0]);
        for (int64_t i = 0; i < out.elements(); ++i)
          store_number(out.dtype, call.outputs[0], i,
                       operation(operands.load<T>(call, 0, i), operands.load<T>(call, 1, i), bits));
      };
    }
  });
}

void add_integer(KernelTable& table) {
  for (const char* op : {"modulo", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left",
                         "shift_right", "logical_and", "logical_or", "logical_xor", "logical_not"})
    add_plain(table, op, prepare_typed, Accepts::any_dtype);
}

}  // namespace weft::reference
