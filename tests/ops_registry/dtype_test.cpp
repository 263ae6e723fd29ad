// The ops that take more than f32, on every dtype that their shape rules accept: by the reference and by the kernels
// that a run would choose, into memory full of garbage, against arithmetic in 128 bits on elements read bit by bit.
#include <functional>

#include "tests/ops_registry/dtype_cases.h"

namespace weft::registry_tests {
namespace {

using any_dtype::bits_at;
using any_dtype::Whole;
using any_dtype::whole_at;

constexpr int kElements = 203;

/// What an op makes of integers: exact, before it wraps around.
using Arithmetic = std::function<Whole(Whole a, Whole b)>;

Whole floor_mod(Whole a, Whole b) {
  const Whole rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
/// Over 2 to the power of b, rounded down.
Whole shifted_right(Whole a, Whole b) {
  if (b < 0 || b > 80) return a < 0 ? -1 : 0;
  const Whole power = Whole{1} << static_cast<int>(b);
  return (a - floor_mod(a, power)) / power;
}

/// Its lowest bits, which alone count, where 128 are not enough.
Whole product(Whole a, Whole b) {
  __extension__ using Bits = unsigned __int128;
  return static_cast<Whole>(static_cast<Bits>(a) * static_cast<Bits>(b));
}

struct IntegerOp {
  std::string op;
  Arithmetic exact;
  Attributes attributes = {};
  bool is_unary = false;
};
void PrintTo(const IntegerOp& op, std::ostream* stream) { *stream << op.op; }

std::vector<IntegerOp> integer_ops() {
  return {
      {"add", [](Whole a, Whole b) { return a + b; }},
      {"subtract", [](Whole a, Whole b) { return a - b; }},
      {"multiply", product},
      {"divide", [](Whole a, Whole b) { return b == 0 ? 0 : a / b; }},
      {"maximum", [](Whole a, Whole b) { return std::max(a, b); }},
      {"minimum", [](Whole a, Whole b) { return std::min(a, b); }},
      {"modulo", [](Whole a, Whole b) { return b == 0 ? 0 : floor_mod(a, b); }},
      {"modulo", [](Whole a, Whole b) { return b == 0 ? 0 : a % b; }, {{"truncated", true}}},
      {"negate", [](Whole a, Whole) { return -a; }, {}, true},
      {"absolute", [](Whole a, Whole) { return a < 0 ? -a : a; }, {}, true},
      {"square", [](Whole a, Whole) { return product(a, a); }, {}, true},
      {"sign", [](Whole a, Whole) { return Whole{(a > 0) - (a < 0)}; }, {}, true},
  };
}

class IntegerArithmetic : public ::testing::TestWithParam<IntegerOp> {};
INSTANTIATE_TEST_SUITE_P(Ops, IntegerArithmetic, ::testing::ValuesIn(integer_ops()), [](const auto& one) {
  return one.param.op + (one.param.attributes.values().empty() ? "" : "_truncated");
});

TEST_P(IntegerArithmetic, WrapsAroundInEveryIntegerType) {
  const OpDef& op = registry().get(GetParam().op);
  for (const DType dtype : dtypes_where(is_integer)) {
    SCOPED_TRACE(name_of(dtype));
    std::vector<Tensor> inputs{any_dtype::draw_bits({dtype, {kElements}, {}}, 3)};
    if (!GetParam().is_unary) inputs.push_back(any_dtype::draw_bits({dtype, {kElements}, {}}, 4));
    for_both(op, inputs, GetParam().attributes, [&](const Tensor& result) {
      ASSERT_EQ(result.dtype(), dtype);
      for (int64_t i = 0; i < kElements; ++i) {
        const Whole a = whole_at(inputs[0], i), b = GetParam().is_unary ? 0 : whole_at(inputs[1], i);
        ASSERT_TRUE(whole_at(result, i) == any_dtype::wrapped(dtype, GetParam().exact(a, b)))
            << static_cast<int64_t>(a) << ", " << static_cast<int64_t>(b) << " gives "
            << static_cast<int64_t>(whole_at(result, i));
      }
    });
  }
}

TEST_P(IntegerArithmetic, Broadcasts) {
  if (GetParam().is_unary) GTEST_SKIP() << "one operand";
  const OpDef& op = registry().get(GetParam().op);
  for (const DType dtype : dtypes_where(is_integer)) {
    SCOPED_TRACE(name_of(dtype));
    const std::vector<Tensor> inputs{any_dtype::draw_bits({dtype, {5, 1}, {}}, 5),
                                     any_dtype::draw_bits({dtype, {3}, {}}, 6)};
    for_both(op, inputs, GetParam().attributes, [&](const Tensor& result) {
      ASSERT_EQ(result.shape(), (Shape{5, 3}));
      for (int64_t i = 0; i < 15; ++i)
        ASSERT_TRUE(whole_at(result, i) == any_dtype::wrapped(dtype, GetParam().exact(whole_at(inputs[0], i / 3),
                                                                                      whole_at(inputs[1], i % 3))));
    });
  }
}

TEST_P(IntegerArithmetic, TakesDoubles) {
  const OpDef& op = registry().get(GetParam().op);
  const std::map<std::string, std::function<double(double, double)>> exact{
      {"add", [](double a, double b) { return a + b; }},
      {"subtract", [](double a, double b) { return a - b; }},
      {"multiply", [](double a, double b) { return a * b; }},
      {"divide", [](double a, double b) { return a / b; }},
      {"maximum", [](double a, double b) { return std::fmax(a, b); }},
      {"minimum", [](double a, double b) { return std::fmin(a, b); }},
      {"modulo",
       [&](double a, double b) {
         const bool truncated = !GetParam().attributes.values().empty();
         return a - b * (truncated ? std::trunc(a / b) : std::floor(a / b));
       }},
      {"negate", [](double a, double) { return -a; }},
      {"absolute", [](double a, double) { return std::fabs(a); }},
      {"square", [](double a, double) { return a * a; }},
      {"sign", [](double a, double) { return static_cast<double>((a > 0) - (a < 0)); }},
  };
  std::vector<Tensor> inputs{draw_tensor({DType::f64, {kElements}, {}}, {-9, 9, true}, 7)};
  if (!GetParam().is_unary) inputs.push_back(draw_tensor({DType::f64, {kElements}, {}}, {-3, 3.1, true}, 8));
  for_both(op, inputs, GetParam().attributes, [&](const Tensor& result) {
    ASSERT_EQ(result.dtype(), DType::f64);
    for (int64_t i = 0; i < kElements; ++i) {
      const double a = inputs[0].data_as<double>()[i], b = GetParam().is_unary ? 0 : inputs[1].data_as<double>()[i];
      ASSERT_NEAR(result.data_as<double>()[i], exact.at(op.name)(a, b), 1e-14 * 9) << a << ", " << b;
    }
  });
}

TEST_P(IntegerArithmetic, RefusesBooleansByName) {
  const OpDef& op = registry().get(GetParam().op);
  const TensorType boolean{DType::boolean, {2}, {}};
  try {
    build_graph(op, std::vector<TensorType>(GetParam().is_unary ? 1 : 2, boolean), GetParam().attributes);
    FAIL() << "accepts booleans";
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const std::string& part : {"[" + op.name + "]", std::string("'example'"), std::string("'input0'"),
                                    std::string("of bool"), std::string("add a cast")})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(BitsOfIntegers, AreThoseOfTheirNumbers) {
  const std::vector<IntegerOp> ops{
      {"bitwise_and", [](Whole a, Whole b) { return a & b; }},
      {"bitwise_or", [](Whole a, Whole b) { return a | b; }},
      {"bitwise_xor", [](Whole a, Whole b) { return a ^ b; }},
      {"bitwise_not", [](Whole a, Whole) { return -a - 1; }, {}, true},
      {"shift_left", [](Whole a, Whole b) { return b < 0 || b > 63 ? 0 : a * (Whole{1} << static_cast<int>(b)); }},
      {"shift_right", shifted_right},
  };
  for (const IntegerOp& one : ops)
    for (const DType dtype : all_dtypes()) {
      SCOPED_TRACE(fmt::format("{} of {}", one.op, name_of(dtype)));
      const OpDef& op = registry().get(one.op);
      if (!is_integer(dtype)) {
        EXPECT_THROW(build_graph(op, {{dtype, {2}, {}}, {dtype, {2}, {}}}, {}), Error);
        continue;
      }
      std::vector<Tensor> inputs{any_dtype::draw_bits({dtype, {kElements}, {}}, 9)};
      if (!one.is_unary) inputs.push_back(any_dtype::draw_bits({dtype, {kElements}, {}}, 10));
      for_both(op, inputs, {}, [&](const Tensor& result) {
        for (int64_t i = 0; i < kElements; ++i) {
          const Whole a = whole_at(inputs[0], i), b = one.is_unary ? 0 : whole_at(inputs[1], i);
          ASSERT_TRUE(whole_at(result, i) == any_dtype::wrapped(dtype, one.exact(a, b)))
              << static_cast<int64_t>(a) << ", " << static_cast<int64_t>(b);
        }
      });
    }
}

TEST(Comparisons, HoldForEveryType) {
  for (const std::string name : {"equal", "greater", "greater_equal"})
    for (const DType dtype : all_dtypes()) {
      SCOPED_TRACE(fmt::format("{} of {}", name, name_of(dtype)));
      const std::vector<Tensor> inputs{any_dtype::draw_bits({dtype, {kElements}, {}}, 11),
                                       any_dtype::draw_bits({dtype, {kElements}, {}}, 12)};
      const auto number = [&](size_t operand, int64_t i) {
        return is_floating(dtype) ? any_dtype::real_at(inputs[operand], i)
                                  : static_cast<long double>(whole_at(inputs[operand], i));
      };
      const DType wanted = is_network_type(dtype) ? dtype : dtype == DType::i32 ? DType::f32 : DType::boolean;
      for_both(registry().get(name), inputs, {}, [&](const Tensor& result) {
        ASSERT_EQ(result.dtype(), wanted);
        for (int64_t i = 0; i < kElements; ++i) {
          const long double a = number(0, i), b = number(1, i);
          if (std::isnan(a) || std::isnan(b)) continue;  // of which kernels for f32 may make NaN
          const bool holds = name == "equal" ? a == b : name == "greater" ? a > b : a >= b;
          ASSERT_EQ(element(result, i) != 0, holds) << static_cast<double>(a) << ", " << static_cast<double>(b);
        }
      });
    }
}

TEST(Logic, FollowsItsTables) {
  const Tensor a = any_dtype::draw_bits({DType::boolean, {kElements}, {}}, 13);
  const Tensor b = any_dtype::draw_bits({DType::boolean, {kElements}, {}}, 14);
  const std::map<std::string, std::function<bool(bool, bool)>> tables{
      {"logical_and", [](bool x, bool y) { return x && y; }},
      {"logical_or", [](bool x, bool y) { return x || y; }},
      {"logical_xor", [](bool x, bool y) { return x != y; }},
      {"logical_not", [](bool x, bool) { return !x; }},
  };
  for (const auto& [name, holds] : tables) {
    SCOPED_TRACE(name);
    const bool is_unary = name == "logical_not";
    for_both(registry().get(name), is_unary ? std::vector<Tensor>{a} : std::vector<Tensor>{a, b}, {},
             [&, &holds = holds](const Tensor& result) {
               for (int64_t i = 0; i < kElements; ++i)
                 ASSERT_EQ(bits_at(result, i), holds(bits_at(a, i), bits_at(b, i)) ? 1u : 0u);
             });
    for (const DType dtype : dtypes_where(is_number))
      EXPECT_THROW(build_graph(registry().get(name), std::vector<TensorType>(is_unary ? 1 : 2, {dtype, {2}, {}}), {}),
                   Error);
  }
}

TEST(WhereOfABoolean, ChoosesBitsOfEveryType) {
  for (const DType dtype : all_dtypes()) {
    SCOPED_TRACE(name_of(dtype));
    const std::vector<Tensor> inputs{any_dtype::draw_bits({DType::boolean, {7, 1}, {}}, 15),
                                     any_dtype::draw_bits({dtype, {7, 3}, {}}, 16),
                                     any_dtype::draw_bits({dtype, {3}, {}}, 17)};
    for_both(registry().get("where"), inputs, {}, [&](const Tensor& result) {
      ASSERT_EQ(result.type(), (TensorType{dtype, {7, 3}, {}}));
      for (int64_t i = 0; i < 21; ++i)
        ASSERT_EQ(bits_at(result, i), bits_at(inputs[0], i / 3) ? bits_at(inputs[1], i) : bits_at(inputs[2], i % 3));
    });
  }
}

// Truncation and saturation from reals, wrapping between integers, one rounding to reals.
TEST(Cast, MeansTheSameBetweenAllTypes) {
  for (const DType from : all_dtypes())
    for (const DType to : all_dtypes()) {
      SCOPED_TRACE(fmt::format("{} to {}", name_of(from), name_of(to)));
      const Tensor source = any_dtype::draw_bits({from, {kElements}, {}}, 18);
      for_both(registry().get("cast"), {source}, {{"dtype", std::string(name_of(to))}}, [&](const Tensor& result) {
        for (int64_t i = 0; i < kElements; ++i) {
          const bool is_real = is_floating(from);
          const long double real =
              is_real ? any_dtype::real_at(source, i) : static_cast<long double>(whole_at(source, i));
          if (is_floating(to)) {
            const long double given = any_dtype::real_at(result, i);
            if (!std::isnan(real)) {
              ASSERT_EQ(given, any_dtype::rounded(to, real)) << "of " << static_cast<double>(real);
            } else {
              ASSERT_TRUE(std::isnan(given));
            }
            continue;
          }
          Whole wanted = 0;
          if (to == DType::boolean)
            wanted = std::isnan(real) || real != 0;
          else if (!is_real)
            wanted = any_dtype::wrapped(to, whole_at(source, i));
          else if (real >= static_cast<long double>(any_dtype::highest(to)))
            wanted = any_dtype::highest(to);
          else if (real <= static_cast<long double>(any_dtype::lowest(to)))
            wanted = any_dtype::lowest(to);
          else if (!std::isnan(real))
            wanted = static_cast<Whole>(real);
          ASSERT_TRUE(whole_at(result, i) == wanted)
              << "of " << static_cast<double>(real) << ": " << static_cast<int64_t>(whole_at(result, i));
        }
      });
    }
}

// On f32 the movers have tests by hand: where each element of a result comes from they are asked with numbered ones.
TEST(Movement, CarriesTheBitsOfEveryType) {
  for (const std::string name :
       {"reshape", "transpose", "broadcast_to", "concat", "slice", "strided_slice", "pad", "reorder"})
    for (OpExample example : registry().get(name).examples) {
      SCOPED_TRACE(name + " '" + example.label + "'");
      if (name == "pad") example.attributes.set("value", 0.0);
      std::vector<Tensor> numbered;
      int64_t number = 1;
      for (const TensorType& type : example.inputs) {
        numbered.emplace_back(type);
        for (int64_t i = 0; i < type.elements(); ++i)
          numbered.back().data_as<float>()[i] = static_cast<float>(number++);
      }
      const NodeSignature plain = build_graph(registry().get(name), example).signature();
      const Tensor places = evaluate_node(plain, numbered, reference_backend())[0];
      for (const DType dtype : all_dtypes()) {
        SCOPED_TRACE(name_of(dtype));
        std::vector<Tensor> inputs;
        std::vector<uint64_t> bits{0};  // of the padding
        for (TensorType type : example.inputs) {
          type.dtype = dtype;
          inputs.push_back(any_dtype::draw_bits(type, 19));
          for (int64_t i = 0; i < type.elements(); ++i) bits.push_back(bits_at(inputs.back(), i));
        }
        for_both(registry().get(name), inputs, example.attributes, [&](const Tensor& result) {
          for (int64_t i = 0; i < places.elements(); ++i)
            ASSERT_EQ(bits_at(result, i), bits[static_cast<size_t>(places.data_as<float>()[i])]) << i;
        });
      }
    }
}

TEST(LookUps, FindElementsOfEveryType) {
  for (const DType dtype : all_dtypes())
    for (const DType index_dtype : {DType::i32, DType::i64}) {
      SCOPED_TRACE(fmt::format("{} by {}", name_of(dtype), name_of(index_dtype)));
      const Tensor x = any_dtype::draw_bits({dtype, {3, 5}, {}}, 20);
      Tensor indices(index_dtype, {3, 2});
      const int64_t chosen[] = {4, 0, 1, 1, 3, 2};
      for (int64_t i = 0; i < 6; ++i) any_dtype::set_bits(indices, i, static_cast<uint64_t>(chosen[i]));
      for_both(registry().get("gather"), {x, indices}, {}, [&](const Tensor& result) {
        for (int64_t i = 0; i < 6; ++i) ASSERT_EQ(bits_at(result, i), bits_at(x, i / 2 * 5 + chosen[i]));
      });
      Tensor negative(index_dtype, {2});
      any_dtype::set_bits(negative, 0, ~uint64_t{0});  // -1: the last
      any_dtype::set_bits(negative, 1, 1);
      for_both(registry().get("take"), {x, negative}, {{"axis", int64_t{1}}}, [&](const Tensor& result) {
        ASSERT_EQ(result.shape(), (Shape{3, 2}));
        for (int64_t row = 0; row < 3; ++row) {
          ASSERT_EQ(bits_at(result, row * 2), bits_at(x, row * 5 + 4));
          ASSERT_EQ(bits_at(result, row * 2 + 1), bits_at(x, row * 5 + 1));
        }
      });
    }
}

TEST(Fills, HoldNumbersOfEveryType) {
  for (const DType dtype : all_dtypes()) {
    SCOPED_TRACE(name_of(dtype));
    const std::string name(name_of(dtype));
    for_both(registry().get("constant"), {},
             {{"shape", std::vector<int64_t>{5}}, {"value", int64_t{1}}, {"dtype", name}}, [&](const Tensor& result) {
               for (int64_t i = 0; i < 5; ++i) ASSERT_EQ(element(result, i), 1);
             });
    for_both(registry().get("iota"), {}, {{"count", int64_t{7}}, {"start", int64_t{-3}}, {"dtype", name}},
             [&](const Tensor& result) {
               for (int64_t i = 0; i < 7; ++i) {
                 if (is_floating(dtype)) {
                   ASSERT_EQ(element(result, i), static_cast<double>(i - 3));
                 } else if (is_integer(dtype)) {
                   ASSERT_TRUE(whole_at(result, i) == any_dtype::wrapped(dtype, i - 3));
                 } else {
                   ASSERT_EQ(bits_at(result, i), i == 3 ? 0u : 1u);
                 }
               }
             });
  }
}

// Beyond 2^53 a double is not enough.
TEST(Fills, HoldEveryInteger) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  for_both(registry().get("constant"), {}, {{"shape", std::vector<int64_t>{2}}, {"value", odd}, {"dtype", "i64"}},
           [&](const Tensor& result) { EXPECT_EQ(result.data_as<int64_t>()[1], odd); });
  const Tensor x = any_dtype::draw_bits({DType::i64, {2}, {}}, 21);
  const Attributes padding{{"low", std::vector<int64_t>{1}}, {"high", std::vector<int64_t>{0}}, {"value", odd}};
  for_both(registry().get("pad"), {x}, padding,
           [&](const Tensor& result) { EXPECT_EQ(result.data_as<int64_t>()[0], odd); });
}

}  // namespace
}  // namespace weft::registry_tests
