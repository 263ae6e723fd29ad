// Functions, sums, products and look-ups on the types that networks do not compute in: f64 to its last digits, integers
// wrapping around, against arithmetic in long double and 128 bits.
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "tests/ops_registry/dtype_cases.h"

namespace weft::registry_tests {
namespace {

using any_dtype::bits_at;
using any_dtype::Whole;
using any_dtype::whole_at;
using Real = long double;

/// Far below f32's last digit.
constexpr double kDoubleTolerance = 1e-14;

Tensor doubles(const Shape& shape, double low, double high, uint64_t key) {
  Tensor tensor(DType::f64, shape);
  RandomStream stream(key);
  for (int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data_as<double>()[i] = low + (high - low) * (static_cast<double>(stream.below(1u << 31)) + 1.0 / 3) / 0x1p31;
  return tensor;
}

/// Adds modulo 2^128, whose lowest bits are those of any narrower type.
Whole wrapping(Whole a, Whole b, bool product) {
  __extension__ using Bits = unsigned __int128;
  const Bits x = static_cast<Bits>(a), y = static_cast<Bits>(b);
  return static_cast<Whole>(product ? x * y : x + y);
}

Real standard_normal(Real x) { return (1 + std::erf(x / std::numbers::sqrt2_v<Real>)) / 2; }

struct Function {
  std::string op;
  double low, high;
  std::function<Real(Real)> exact;
  Attributes attributes = {};
};
void PrintTo(const Function& function, std::ostream* stream) { *stream << function.op; }

std::vector<Function> functions() {
  return {
      {"exp", -9, 9, [](Real x) { return std::exp(x); }},
      {"log", 0.1, 9, [](Real x) { return std::log(x); }},
      {"sqrt", 0, 9, [](Real x) { return std::sqrt(x); }},
      {"reciprocal", 0.5, 9, [](Real x) { return 1 / x; }},
      {"tanh", -3, 3, [](Real x) { return std::tanh(x); }},
      {"sigmoid", -9, 9, [](Real x) { return 1 / (1 + std::exp(-x)); }},
      {"softplus", -9, 9, [](Real x) { return std::log1p(std::exp(x)); }},
      {"erf", -2, 2, [](Real x) { return std::erf(x); }},
      {"gelu", -3, 3, [](Real x) { return x * standard_normal(x); }},
      {"relu", -1, 1, [](Real x) { return x < 0 ? 0 : x; }},
      {"floor", -9, 9, [](Real x) { return std::floor(x); }},
      {"ceil", -9, 9, [](Real x) { return std::ceil(x); }},
      {"round", -9, 9, [](Real x) { return std::nearbyint(x); }},
      {"sin", -9, 9, [](Real x) { return std::sin(x); }},
      {"cos", -9, 9, [](Real x) { return std::cos(x); }},
      {"tan", -1, 1, [](Real x) { return std::tan(x); }},
      {"asin", -1, 1, [](Real x) { return std::asin(x); }},
      {"acos", -1, 1, [](Real x) { return std::acos(x); }},
      {"atan", -9, 9, [](Real x) { return std::atan(x); }},
      {"sinh", -3, 3, [](Real x) { return std::sinh(x); }},
      {"cosh", -3, 3, [](Real x) { return std::cosh(x); }},
      {"asinh", -9, 9, [](Real x) { return std::asinh(x); }},
      {"acosh", 1.1, 9, [](Real x) { return std::acosh(x); }},
      {"atanh", -0.9, 0.9, [](Real x) { return std::atanh(x); }},
      // 0.1, rounded to f32, would be wrong in the eighth digit.
      {"add_scalar", -1, 1, [](Real x) { return x + static_cast<Real>(0.1); }, {{"value", 0.1}}},
      {"multiply_scalar", -1, 1, [](Real x) { return x * static_cast<Real>(0.1); }, {{"value", 0.1}}},
      {"pow_scalar", 0.1, 2, [](Real x) { return std::pow(x, static_cast<Real>(0.1)); }, {{"value", 0.1}}},
      {"leaky_relu", -1, 1, [](Real x) { return x < 0 ? x * static_cast<Real>(0.1) : x; }, {{"slope", 0.1}}},
      {"clip",
       -1,
       1,
       [](Real x) { return std::clamp(x, static_cast<Real>(-0.1), static_cast<Real>(0.3)); },
       {{"low", -0.1}, {"high", 0.3}}},
  };
}

class FunctionOfDoubles : public ::testing::TestWithParam<Function> {};
INSTANTIATE_TEST_SUITE_P(Ops, FunctionOfDoubles, ::testing::ValuesIn(functions()),
                         [](const auto& one) { return one.param.op; });

TEST_P(FunctionOfDoubles, KeepsItsDigits) {
  const Function& function = GetParam();
  const Tensor x = doubles({101}, function.low, function.high, 1);
  for_both(registry().get(function.op), {x}, function.attributes, [&](const Tensor& result) {
    ASSERT_EQ(result.type(), (TensorType{DType::f64, {101}, {}}));
    for (int64_t i = 0; i < 101; ++i) {
      const Real exact = function.exact(x.data_as<double>()[i]);
      ASSERT_NEAR(result.data_as<double>()[i], static_cast<double>(exact),
                  kDoubleTolerance * std::max(1.0, std::fabs(static_cast<double>(exact))));
    }
  });
}

TEST(PowerOfDoubles, KeepsItsDigits) {
  const Tensor a = doubles({7, 1}, 0.1, 3, 2), b = doubles({5}, -3, 3, 3);
  for_both(registry().get("pow"), {a, b}, {}, [&](const Tensor& result) {
    ASSERT_EQ(result.type(), (TensorType{DType::f64, {7, 5}, {}}));
    for (int64_t i = 0; i < 35; ++i) {
      const double exact = std::pow(a.data_as<double>()[i / 5], b.data_as<double>()[i % 5]);
      ASSERT_NEAR(result.data_as<double>()[i], exact, kDoubleTolerance * std::max(1.0, exact));
    }
  });
}

TEST(PowerOfIntegers, WrapsAroundAndIsCutOff) {
  for (const DType dtype : dtypes_where(is_integer)) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor a = any_dtype::draw_bits({dtype, {203}, {}}, 4), b = any_dtype::draw_bits({dtype, {203}, {}}, 5);
    for_both(registry().get("pow"), {a, b}, {}, [&](const Tensor& result) {
      for (int64_t i = 0; i < 203; ++i) {
        const Whole base = whole_at(a, i), exponent = whole_at(b, i);
        Whole power = 1;
        if (exponent < 0) {
          power = base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
        } else {
          for (int bit = bits_of(dtype); bit-- > 0;) {  // from the highest bit
            power = wrapping(power, power, true);
            if ((exponent >> bit) & 1) power = wrapping(power, base, true);
          }
        }
        ASSERT_TRUE(whole_at(result, i) == any_dtype::wrapped(dtype, power))
            << static_cast<int64_t>(base) << " to the power of " << static_cast<int64_t>(exponent);
      }
    });
  }
}

TEST(ReductionsOfIntegers, WrapAroundInEveryType) {
  for (const std::string name : {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"})
    for (const DType dtype : dtypes_where(is_integer)) {
      SCOPED_TRACE(fmt::format("{} of {}", name, name_of(dtype)));
      const Tensor x = any_dtype::draw_bits({dtype, {3, 7, 5}, {}}, 6);
      for_both(registry().get(name), {x}, {{"axes", std::vector<int64_t>{1}}}, [&](const Tensor& result) {
        ASSERT_EQ(result.type(), (TensorType{dtype, {3, 5}, {}}));
        for (int64_t out = 0; out < 15; ++out) {
          Whole expected = whole_at(x, out / 5 * 35 + out % 5);
          for (int64_t k = 1; k < 7; ++k) {
            const Whole value = whole_at(x, out / 5 * 35 + k * 5 + out % 5);
            expected = name == "reduce_max"   ? std::max(expected, value)
                       : name == "reduce_min" ? std::min(expected, value)
                                              : wrapping(expected, value, name == "reduce_prod");
          }
          ASSERT_TRUE(whole_at(result, out) == any_dtype::wrapped(dtype, expected)) << out;
        }
      });
    }
}

TEST(ReductionsOfIntegers, OfNothingAreNeutral) {
  for (const DType dtype : dtypes_where(is_integer)) {
    SCOPED_TRACE(name_of(dtype));
    const std::vector<std::pair<std::string, Whole>> neutral{{"reduce_sum", 0},
                                                             {"reduce_prod", 1},
                                                             {"reduce_max", any_dtype::lowest(dtype)},
                                                             {"reduce_min", any_dtype::highest(dtype)}};
    for (const auto& [name, number] : neutral)
      for_both(registry().get(name), {Tensor(dtype, {2, 0})}, {{"axes", std::vector<int64_t>{1}}},
               [&, &name = name, &number = number](const Tensor& result) {
                 const Whole wanted = any_dtype::wrapped(dtype, number);
                 for (int64_t i = 0; i < 2; ++i) ASSERT_TRUE(whole_at(result, i) == wanted) << name;
               });
  }
}

TEST(ReductionsOfDoubles, KeepTheirDigits) {
  const std::map<std::string, std::function<Real(Real, Real)>> joins{
      {"reduce_sum", [](Real a, Real b) { return a + b; }},
      {"reduce_mean", [](Real a, Real b) { return a + b; }},
      {"reduce_prod", [](Real a, Real b) { return a * b; }},
      {"reduce_max", [](Real a, Real b) { return std::max(a, b); }},
      {"reduce_min", [](Real a, Real b) { return std::min(a, b); }},
  };
  const Tensor x = doubles({4, 9}, -2, 2, 7);
  for (const auto& [name, join] : joins)
    for_both(registry().get(name), {x}, {{"axes", std::vector<int64_t>{-1}}},
             [&, &name = name, &join = join](const Tensor& result) {
               ASSERT_EQ(result.type(), (TensorType{DType::f64, {4}, {}})) << name;
               for (int64_t row = 0; row < 4; ++row) {
                 Real expected = x.data_as<double>()[row * 9];
                 for (int64_t k = 1; k < 9; ++k) expected = join(expected, x.data_as<double>()[row * 9 + k]);
                 if (name == "reduce_mean") expected /= 9;
                 ASSERT_NEAR(result.data_as<double>()[row], static_cast<double>(expected),
                             kDoubleTolerance * std::max(1.0, std::fabs(static_cast<double>(expected))))
                     << name;
               }
             });
}

TEST(ReductionsOfDoubles, GiveTheirOwnType) {
  const TensorType x{DType::f64, {4}, {}};
  EXPECT_THROW(build_graph(registry().get("reduce_sum"), {x}, {{"result_dtype", "f32"}}), Error);
  EXPECT_THROW(build_graph(registry().get("reduce_mean"), {{DType::i64, {4}, {}}}, {}), Error);
}

TEST(SoftmaxOfDoubles, KeepsItsDigits) {
  const Tensor x = doubles({3, 5}, -2, 2, 8);
  for (const std::string name : {"softmax", "log_softmax"})
    for_both(registry().get(name), {x}, {}, [&](const Tensor& result) {
      ASSERT_EQ(result.dtype(), DType::f64);
      for (int64_t i = 0; i < 15; ++i) {
        Real sum = 0;
        for (int64_t k = 0; k < 5; ++k) sum += std::exp(static_cast<Real>(x.data_as<double>()[i / 5 * 5 + k]));
        const Real share = std::exp(static_cast<Real>(x.data_as<double>()[i])) / sum;
        ASSERT_NEAR(result.data_as<double>()[i], static_cast<double>(name == "softmax" ? share : std::log(share)),
                    kDoubleTolerance);
      }
    });
}

TEST(ProductOfMatrices, IsExactInIntegersAndDoubles) {
  for (const DType dtype : {DType::i32, DType::i64, DType::u32, DType::u64, DType::f64}) {
    SCOPED_TRACE(name_of(dtype));
    const bool is_real = dtype == DType::f64;
    const Tensor a = is_real ? doubles({2, 3, 4}, -1, 1, 9) : any_dtype::draw_bits({dtype, {2, 3, 4}, {}}, 9);
    const Tensor b = is_real ? doubles({5, 4}, -1, 1, 10) : any_dtype::draw_bits({dtype, {5, 4}, {}}, 10);
    for_both(registry().get("matmul"), {a, b}, {{"transpose_b", true}}, [&](const Tensor& result) {
      ASSERT_EQ(result.type(), (TensorType{dtype, {2, 3, 5}, {}}));
      for (int64_t i = 0; i < 30; ++i) {
        Whole whole = 0;
        Real real = 0;
        for (int64_t k = 0; k < 4; ++k) {
          const int64_t left = i / 5 * 4 + k, right = i % 5 * 4 + k;
          if (is_real)
            real += static_cast<Real>(a.data_as<double>()[left]) * b.data_as<double>()[right];
          else
            whole = wrapping(whole, wrapping(whole_at(a, left), whole_at(b, right), true), false);
        }
        if (is_real) {
          ASSERT_NEAR(result.data_as<double>()[i], static_cast<double>(real), kDoubleTolerance);
        } else {
          ASSERT_TRUE(whole_at(result, i) == any_dtype::wrapped(dtype, whole)) << i;
        }
      }
    });
  }
  for (const DType narrow : {DType::i8, DType::u8, DType::i4, DType::boolean})
    EXPECT_THROW(build_graph(registry().get("matmul"), {{narrow, {2, 2}, {}}, {narrow, {2, 2}, {}}}, {}), Error);
}

/// Whether the element is a NaN, and whether a is less than b: what orders elements of any number type.
bool is_nan_at(const Tensor& x, int64_t i) { return is_floating(x.dtype()) && std::isnan(any_dtype::real_at(x, i)); }
bool less_at(const Tensor& x, int64_t a, int64_t b) {
  if (is_nan_at(x, a) || is_nan_at(x, b)) return !is_nan_at(x, a) && is_nan_at(x, b);
  if (is_floating(x.dtype())) return any_dtype::real_at(x, a) < any_dtype::real_at(x, b);
  return whole_at(x, a) < whole_at(x, b);
}

TEST(Argmax, FindsTheFirstLargestOfEveryType) {
  for (const DType dtype : dtypes_where(is_number)) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor x = any_dtype::draw_bits({dtype, {9, 21}, {}}, 11);
    for_both(registry().get("argmax"), {x}, {}, [&](const Tensor& result) {
      ASSERT_EQ(result.dtype(), DType::i32);
      for (int64_t row = 0; row < 9; ++row) {
        int64_t best = 0;
        for (int64_t k = 1; k < 21; ++k)
          if (less_at(x, row * 21 + best, row * 21 + k)) best = k;
        ASSERT_EQ(result.data_as<int32_t>()[row], best);
      }
    });
  }
}

TEST(TopK, SortsEveryType) {
  for (const DType dtype : all_dtypes())
    for (const bool largest : {true, false}) {
      SCOPED_TRACE(fmt::format("{} of {}", largest ? "largest" : "smallest", name_of(dtype)));
      const Tensor x = any_dtype::draw_bits({dtype, {31}, {}}, 12);
      std::vector<int64_t> places(31);
      std::iota(places.begin(), places.end(), 0);
      std::stable_sort(places.begin(), places.end(),
                       [&](int64_t a, int64_t b) { return largest ? less_at(x, b, a) : less_at(x, a, b); });
      const Attributes attributes{{"k", int64_t{9}}, {"largest", largest}};
      for_both(registry().get("top_k"), {x}, attributes, [&](const Tensor& values) {
        for (int64_t i = 0; i < 9; ++i) ASSERT_EQ(bits_at(values, i), bits_at(x, places[static_cast<size_t>(i)]));
      });
      const NodeSignature node = build_graph(registry().get("top_k"), {x.type()}, attributes).signature();
      const Tensor indices = run_on(chosen_backend(), node, {x})[1];
      for (int64_t i = 0; i < 9; ++i) ASSERT_EQ(indices.data_as<int64_t>()[i], places[static_cast<size_t>(i)]);
    }
}

TEST(CumulativeSum, WrapsAroundInEveryIntegerType) {
  for (const DType dtype : dtypes_where(is_integer))
    for (const bool reverse : {false, true})
      for (const bool exclusive : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, {}, {}", name_of(dtype), reverse, exclusive));
        const Tensor x = any_dtype::draw_bits({dtype, {3, 7}, {}}, 13);
        for_both(registry().get("cumulative_sum"), {x}, {{"reverse", reverse}, {"exclusive", exclusive}},
                 [&](const Tensor& result) {
                   ASSERT_EQ(result.type(), x.type());
                   for (int64_t i = 0; i < 21; ++i) {
                     Whole sum = 0;
                     for (int64_t k = i / 7 * 7; k < i / 7 * 7 + 7; ++k)
                       if ((reverse ? k > i : k < i) || (k == i && !exclusive))
                         sum = wrapping(sum, whole_at(x, k), false);
                     ASSERT_TRUE(whole_at(result, i) == any_dtype::wrapped(dtype, sum)) << i;
                   }
                 });
      }
}

TEST(CumulativeSum, KeepsTheDigitsOfDoubles) {
  const Tensor x = doubles({9}, -1, 1, 14);
  for_both(registry().get("cumulative_sum"), {x}, {}, [&](const Tensor& result) {
    Real sum = 0;
    for (int64_t i = 0; i < 9; ++i) {
      sum += x.data_as<double>()[i];
      ASSERT_NEAR(result.data_as<double>()[i], static_cast<double>(sum), kDoubleTolerance);
    }
  });
}

Tensor indices_of(DType dtype, const Shape& shape, const std::vector<int64_t>& values) {
  Tensor tensor(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i)
    any_dtype::set_bits(tensor, static_cast<int64_t>(i), static_cast<uint64_t>(values[i]));
  return tensor;
}

TEST(Scatters, CarryTheBitsOfEveryType) {
  for (const DType dtype : all_dtypes())
    for (const DType index_dtype : {DType::i32, DType::i64}) {
      SCOPED_TRACE(fmt::format("{} by {}", name_of(dtype), name_of(index_dtype)));
      const Tensor data = any_dtype::draw_bits({dtype, {7}, {}}, 15),
                   updates = any_dtype::draw_bits({dtype, {3}, {}}, 16);
      const auto check = [&](const Tensor& result) {
        for (int64_t i = 0; i < 7; ++i)
          ASSERT_EQ(bits_at(result, i), i == 2 ? bits_at(updates, 0) : i == 6 ? bits_at(updates, 1) : bits_at(data, i));
      };
      for_both(registry().get("scatter_elements"), {data, indices_of(index_dtype, {3}, {2, -1, 7}), updates}, {},
               check);
      for_both(registry().get("scatter_nd"), {data, indices_of(index_dtype, {3, 1}, {2, -1, 7}), updates}, {}, check);
    }
}

TEST(Scatters, ReduceIntegersExactly) {
  for (const std::string reduction : {"add", "multiply", "maximum", "minimum"})
    for (const DType dtype : dtypes_where(is_integer)) {
      SCOPED_TRACE(fmt::format("{} of {}", reduction, name_of(dtype)));
      const Tensor data = any_dtype::draw_bits({dtype, {5}, {}}, 17),
                   updates = any_dtype::draw_bits({dtype, {9}, {}}, 18);
      const auto check = [&](const Tensor& result) {
        for (int64_t i = 0; i < 5; ++i) {
          Whole expected = whole_at(data, i);
          for (int64_t k = i; k < 9; k += 5) {  // update k goes to k % 5
            const Whole value = whole_at(updates, k);
            expected = reduction == "maximum"   ? std::max(expected, value)
                       : reduction == "minimum" ? std::min(expected, value)
                                                : wrapping(expected, value, reduction == "multiply");
            expected = any_dtype::wrapped(dtype, expected);
          }
          ASSERT_TRUE(whole_at(result, i) == expected) << i;
        }
      };
      const std::vector<int64_t> places{0, 1, 2, 3, 4, 0, 1, 2, 3};
      for_both(registry().get("scatter_elements"), {data, indices_of(DType::i64, {9}, places), updates},
               {{"reduction", reduction}}, check);
      for_both(registry().get("scatter_nd"), {data, indices_of(DType::i32, {9, 1}, places), updates},
               {{"reduction", reduction}}, check);
    }
}

TEST(Scatters, ReduceNoBooleans) {
  const TensorType data{DType::boolean, {5}, {}}, indices{DType::i32, {2}, {}}, updates{DType::boolean, {2}, {}};
  EXPECT_THROW(build_graph(registry().get("scatter_elements"), {data, indices, updates}, {{"reduction", "add"}}),
               Error);
}

TEST(GatherNd, CarriesTheBitsOfEveryType) {
  for (const DType dtype : all_dtypes()) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor data = any_dtype::draw_bits({dtype, {3, 4, 5}, {}}, 19);
    for_both(registry().get("gather_nd"), {data, indices_of(DType::i64, {3, 2}, {2, 1, -3, -1, 3, 0})}, {},
             [&](const Tensor& result) {
               ASSERT_EQ(result.type(), (TensorType{dtype, {3, 5}, {}}));
               for (int64_t i = 0; i < 5; ++i) {
                 ASSERT_EQ(bits_at(result, i), bits_at(data, 45 + i));
                 ASSERT_EQ(bits_at(result, 5 + i), bits_at(data, 15 + i));
                 // There is no such row.
                 if (is_floating(dtype)) {
                   ASSERT_TRUE(std::isnan(any_dtype::real_at(result, 10 + i)));
                 } else {
                   ASSERT_EQ(bits_at(result, 10 + i), 0u);
                 }
               }
             });
  }
}

}  // namespace
}  // namespace weft::registry_tests
