#include <array>
#include <limits>

#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;

/// In f32 and in bf16.
void expect_matches(const Case& c) {
  expect_matches_reference(c);
  expect_matches_rounded_reference(in_bf16(c));
}

Case unary_case(const std::string& op, const TensorType& type, double low, double high) {
  Case c;
  c.op = op;
  c.inputs = c.outputs = {type};
  c.low = low;
  c.high = high;
  c.tolerance = 1e-6;
  if (op.starts_with("gelu")) c.attributes.set("approximate", false);
  if (op == "leaky_relu") c.attributes.set("slope", 0.1);
  if (op == "elu") c.attributes.set("alpha", 1.0);
  if (op == "clip") c.attributes = {{"low", -0.5}, {"high", 0.75}};
  if (op.ends_with("_scalar")) c.attributes.set("value", 0.75);
  return c;
}

TEST(NativeElementwise, UnaryOpsMatchReference) {
  struct Row {
    const char* op;
    double low, high;
  };
  for (const Row& row : {Row{"relu", -1, 1},
                         Row{"gelu", -6, 6},
                         Row{"tanh", -12, 12},
                         Row{"sigmoid", -30, 30},
                         Row{"exp", -20, 3},
                         Row{"log", 1e-6, 20},
                         Row{"sqrt", 0, 9},
                         Row{"negate", -1, 1},
                         Row{"absolute", -1, 1},
                         Row{"square", -3, 3},
                         Row{"reciprocal", 0.25, 4},
                         Row{"add_scalar", -1, 1},
                         Row{"multiply_scalar", -1, 1},
                         Row{"leaky_relu", -1, 1},
                         Row{"elu", -20, 2},
                         Row{"clip", -1, 1},
                         Row{"hardswish", -6, 6},
                         Row{"silu", -20, 20},
                         Row{"softplus", -30, 30},
                         Row{"erf", -5, 5},
                         Row{"sign", -1, 1},
                         Row{"floor", -9, 9},
                         Row{"pow_scalar", 0, 9}})
    for (const TensorType& type : {f32({}), f32({7}), f32({40, 1033}), f32({3, 21, 5, 7}, "acdb"),
                                   f32({3, 21, 5, 7}, "aBcd16b"), f32({2, 12, 9, 9}, "aBcd8b")})
      expect_matches(unary_case(row.op, type, row.low, row.high));
}

TEST(NativeElementwise, TanhFormOfGeluMatchesReference) {
  Case c = unary_case("gelu", f32({5000}), -6, 6);
  c.attributes.set("approximate", true);
  expect_matches(c);
}

/// The tanh form's slope takes 1 - tanh^2, in which an error of tanh counts for some ten times as much.
constexpr double kTanhFormTolerance = 2e-5;

Case gelu_and_slope_case(const TensorType& type, const std::string& program, int64_t value, int64_t slope,
                         double tolerance = 4e-6) {
  Case c;
  c.op = "fused_elementwise";
  c.inputs = {type, f32({})};
  c.outputs = {type, type};
  c.low = -6;
  c.high = 6;
  c.tolerance = tolerance;
  c.attributes = {{"program", program}, {"results", std::vector<int64_t>{value, slope}}};
  return c;
}

TEST(NativeElementwise, GeluAndItsSlopeAreComputedTogether) {
  for (const TensorType& type : {f32({5000}), f32({3, 21, 5, 7}, "aBcd16b")}) {
    expect_matches_reference(gelu_and_slope_case(type, "gelu_slope(0);gelu(0)", 3, 2));
    expect_matches_reference(gelu_and_slope_case(type, "add(0,1);gelu_slope(2);gelu(2)", 4, 3));
    expect_matches_reference(gelu_and_slope_case(type, "add(0,1);gelu_slope(2);gelu(2);multiply(4,1)", 5, 3));
    expect_matches(gelu_and_slope_case(type, "gelu_slope(0,1);gelu(0,1)", 3, 2, kTanhFormTolerance));
    expect_matches(gelu_and_slope_case(type, "gelu_slope(0,1);gelu(0,1);add(2,3)", 4, 2, kTanhFormTolerance));
  }
  expect_matches_reference(unary_case("gelu_slope", f32({5000}), -6, 6));
}

/// Half a unit in the last place of a bf16 of this size.
double half_unit(double value) {
  return std::ldexp(1, std::max(std::ilogb(std::max(std::abs(value), 1e-300)), -126) - 8);
}

// All 65536 numbers: half a unit is what rounding alone loses.
TEST(NativeElementwise, GeluAndItsSlopeInBf16AreAccurateForEveryNumber) {
  Tensor x(DType::bf16, Shape{65536}), zero(DType::bf16, Shape{});
  for (int64_t i = 0; i < 65536; ++i) x.data_as<uint16_t>()[i] = static_cast<uint16_t>(i);
  zero.data_as<uint16_t>()[0] = 0;
  const TensorType numbers{DType::bf16, Shape{65536}, {}};
  // From f32 in a buffer, from bf16 in memory, and each alone.
  const Case after_sum = in_bf16(gelu_and_slope_case(numbers, "add(0,1);gelu_slope(2);gelu(2)", 4, 3));
  const Case at_once = in_bf16(gelu_and_slope_case(numbers, "gelu_slope(0);gelu(0)", 3, 2));
  const auto expect_accurate = [&](const Tensor& y, const Tensor& slope, const std::string& what) {
    for (int64_t i = 0; i < 65536; ++i) {
      const double at = load_element(DType::bf16, x.data(), i), value = load_element(DType::bf16, y.data(), i);
      const double derivative = load_element(DType::bf16, slope.data(), i);
      if (std::isnan(at)) {
        ASSERT_TRUE(std::isnan(value) && std::isnan(derivative)) << what << " of NaN " << i;
        continue;
      }
      const double below = 0.5 * std::erfc(-at / std::sqrt(2.0));
      const double density = std::exp(-0.5 * at * at) / std::sqrt(2 * 3.14159265358979324);
      const double exact = std::isinf(at) ? std::max(at, 0.0) : at * below;
      const double exact_slope = std::isinf(at) ? (at > 0 ? 1 : 0) : below + at * density;
      const double error = value == exact ? 0 : std::abs(value - exact);  // both may be infinite
      ASSERT_LE(error, 1.25 * half_unit(exact) + 2e-8) << what << ": gelu(" << at << ")";
      ASSERT_LE(std::abs(derivative - exact_slope), 1.25 * half_unit(exact_slope) + 3e-5)
          << what << ": slope at " << at;
    }
  };
  for (const auto isa : available_isas()) {
    const std::string name(name_of(isa));
    std::string why_not;
    const auto run = [&](const Case& c, const std::vector<Tensor>& inputs) {
      const BareNode node(c);
      const auto kernel = make_native(node.signature, isa, 2, why_not);
      return run_kernel(*kernel, node.signature, inputs);
    };
    for (const Case* c : {&after_sum, &at_once}) {
      const auto results = run(*c, {x, zero});
      expect_accurate(results[0], results[1], name + ", together");
    }
    expect_accurate(run(in_bf16(unary_case("gelu", f32({65536}), 0, 1)), {x})[0],
                    run(in_bf16(unary_case("gelu_slope", f32({65536}), 0, 1)), {x})[0], name + ", alone");
  }
}

TEST(NativeElementwise, GeluAndItsSlopeMayOverwriteTheirOperand) {
  for (const bool narrow : {false, true})
    for (const char* program : {"gelu_slope(0);gelu(0)", "gelu_slope(0,1);gelu(0,1)"}) {
      const Case wide = gelu_and_slope_case(f32({3000}), program, 3, 2);
      const Case c = narrow ? in_bf16(wide) : wide;
      std::vector<Tensor> inputs;
      for (const Tensor& input : plain_inputs(wide)) inputs.push_back(converted(input, c.inputs[0].dtype));
      const BareNode node(c);
      for (const auto isa : available_isas()) {
        std::string why_not;
        const auto kernel = make_native(node.signature, isa, 2, why_not);
        const auto expected = run_kernel(*kernel, node.signature, inputs);
        for (const size_t overwriting : {0U, 1U}) {
          Tensor x = inputs[0].clone(), other(c.outputs[0]);
          const auto workspace = allocate_aligned(std::max<int64_t>(64, kernel->workspace_bytes()));
          std::vector<void*> to{other.data(), other.data()};
          to[overwriting] = x.data();
          kernel->run({std::vector<const void*>{x.data(), inputs[1].data()}, to, workspace.get()});
          const auto bytes = static_cast<size_t>(x.bytes());
          EXPECT_EQ(std::memcmp(x.data(), expected[overwriting].data(), bytes), 0) << program;
          EXPECT_EQ(std::memcmp(other.data(), expected[1 - overwriting].data(), bytes), 0) << program;
        }
      }
    }
}

TEST(NativeElementwise, BinaryOpsMatchReferenceUnderBroadcasting) {
  for (const char* op :
       {"add", "subtract", "multiply", "maximum", "minimum", "greater", "greater_equal", "relu_backward"})
    for (const auto& [a, b, y] :
         std::vector<std::array<Shape, 3>>{{Shape{2, 3, 4}, Shape{2, 3, 4}, Shape{2, 3, 4}},
                                           {Shape{64, 50}, Shape{50}, Shape{64, 50}},
                                           {Shape{64, 50}, Shape{64, 1}, Shape{64, 50}},
                                           {Shape{2, 3, 40, 41}, Shape{3, 1, 1}, Shape{2, 3, 40, 41}},
                                           {Shape{5, 1, 7}, Shape{4, 1}, Shape{5, 4, 7}},
                                           {Shape{5, 1, 7}, Shape{1, 30, 1}, Shape{5, 30, 7}},
                                           {Shape{1}, Shape{300, 9}, Shape{300, 9}},
                                           {Shape{6, 1, 5, 1}, Shape{1, 7, 1, 9}, Shape{6, 7, 5, 9}},
                                           {Shape{}, Shape{}, Shape{}}}) {
      if (std::string(op) == "relu_backward" && a != b) continue;
      Case c;
      c.op = op;
      c.inputs = {f32(a), f32(b)};
      c.outputs = {f32(y)};
      expect_matches(c);
    }
}

TEST(NativeElementwise, ChannelOperandsWorkInEveryLayout) {
  for (const std::string layout : {"", "acdb", "aBcd16b", "aBcd8b"})
    for (const Shape& shape : {Shape{3, 32, 5, 7}, Shape{2, 21, 30, 30}, Shape{1, 5, 2, 1}})
      for (const Shape& channel : {Shape{shape[1], 1, 1}, Shape{1, shape[1], 1, 1}, Shape{1}}) {
        Case c;
        c.op = "divide";
        c.inputs = {f32(shape, layout), f32(channel)};
        c.outputs = {f32(shape, layout)};
        c.low = 0.5;
        c.high = 2;
        expect_matches(c);
      }
}

TEST(NativeElementwise, ChoosesInEveryLayoutAndLetsTheOtherOperandBeNotANumber) {
  for (const std::string layout : {"", "acdb", "aBcd16b"}) {
    Case c;
    c.op = "where";
    const TensorType image = f32({2, 21, 5, 7}, layout);
    c.inputs = {image, image, f32({1, 21, 1, 1})};
    c.outputs = {image};
    c.prepare = [](std::vector<Tensor>& inputs) {
      float* mask = inputs[0].data_as<float>();
      for (int64_t i = 0; i < inputs[0].elements(); ++i) {
        mask[i] = mask[i] > 0 ? 1.0f : 0.0f;
        if (mask[i] == 0) inputs[1].data_as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
      }
    };
    expect_matches(c);
  }
}

TEST(NativeElementwise, ComparesIntegersExactly) {
  Case c;
  c.op = "equal";
  c.inputs = {i32({100}), i32({100})};
  c.outputs = {f32({100})};
  c.integer_bound = 3;
  expect_matches_reference(c);
  c.op = "greater_equal";
  expect_matches_reference(c);
  c.op = "greater";
  c.prepare = [](std::vector<Tensor>& inputs) {
    inputs[0].data_as<int32_t>()[0] = 16777217;  // not a float
    inputs[1].data_as<int32_t>()[0] = 16777216;
    inputs[0].data_as<int32_t>()[1] = -2;
  };
  expect_matches_reference(c);
}

Case fused_case(const std::string& layout) {
  Case c;
  c.op = "fused_elementwise";
  const TensorType image = f32({2, 21, 17, 13}, layout);
  c.inputs = {image, f32({1, 21, 1, 1}), image, f32({})};
  c.outputs = {image, image};
  c.attributes = {{"program", std::string("multiply(0,1);add(4,2);relu(5);multiply(6,3);exp(7);add(8,0);tanh(9)")},
                  {"results", std::vector<int64_t>{6, 10}}};
  return c;
}

TEST(NativeElementwise, FusedProgramsMatchReference) {
  for (const std::string layout : {"", "acdb", "aBcd16b", "aBcd8b"}) expect_matches(fused_case(layout));
}

TEST(NativeElementwise, ResultsMayOverwriteAnyInputOfTheirShape) {
  const Case c = fused_case("aBcd16b");
  const auto inputs = plain_inputs(c);
  const auto expected = run_reference(c, inputs);
  const BareNode node(c);
  for (const auto isa : available_isas())
    for (const bool swapped : {false, true}) {
      std::string why_not;
      const auto kernel = make_native(node.signature, isa, 2, why_not);
      ASSERT_NE(kernel, nullptr) << why_not;
      std::vector<Tensor> laid_out;
      for (size_t i = 0; i < inputs.size(); ++i) laid_out.push_back(inputs[i].with_layout(c.inputs[i].layout));
      const auto workspace = allocate_aligned(std::max<int64_t>(64, kernel->workspace_bytes()));
      const std::vector<const void*> from = {laid_out[0].data(), laid_out[1].data(), laid_out[2].data(),
                                             laid_out[3].data()};
      const size_t first = swapped ? 2 : 0;
      const std::vector<void*> to = {laid_out[first].data(), laid_out[2 - first].data()};
      kernel->run({from, to, workspace.get()});
      expect_close(laid_out[first], expected[0], 2e-6, "first result in place");
      expect_close(laid_out[2 - first], expected[1], 2e-6, "second result in place");
    }
}

TEST(NativeElementwise, ElementaryFunctionsAreAccurateOverTheirRange) {
  struct Row {
    const char* op;
    double (*exact)(double);
    double low, high, relative, absolute;
  };
  for (const Row& row :
       {Row{"exp", std::exp, -103, 88.7, 3e-7, 2e-45}, Row{"tanh", std::tanh, -20, 20, 5e-7, 0},
        Row{"log", std::log, 1e-30, 1e3, 3e-7, 1e-7}, Row{"log", std::log, 0.5, 2, 3e-7, 0},
        Row{"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, 1e-6, 1e-38},
        Row{"elu", [](double x) { return x < 0 ? std::expm1(x) : x; }, -20, 0.1, 1e-6, 0},
        Row{"silu", [](double x) { return x / (1 + std::exp(-x)); }, -60, 60, 1e-6, 1e-24},
        Row{"softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, -60, 60, 1e-6,
            1e-26},
        Row{"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, -5, 5, 3e-7, 1e-6}}) {
    const Case c = unary_case(row.op, f32({20001}), row.low, row.high);
    const BareNode node(c);
    Tensor x(c.inputs[0]);
    for (int64_t i = 0; i < 20001; ++i)
      x.data_as<float>()[i] = static_cast<float>(row.low + (row.high - row.low) * static_cast<double>(i) / 20000);
    for (const auto isa : available_isas()) {
      std::string why_not;
      const auto y = run_kernel(*make_native(node.signature, isa, 1, why_not), node.signature, {x})[0];
      for (int64_t i = 0; i < 20001; ++i) {
        const double at = static_cast<double>(x.data_as<float>()[i]), exact = row.exact(at);
        ASSERT_NEAR(static_cast<double>(y.data_as<float>()[i]), exact, row.relative * std::abs(exact) + row.absolute)
            << row.op << "(" << at << ") on " << name_of(isa);
      }
    }
  }
}

TEST(NativeElementwise, SpecialValuesBehaveAsInTheStandardLibrary) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values = {infinity, -infinity, nan, 0.0f, -0.0f, 1000.0f, -1000.0f, -1.0f, 1e-40f};
  for (const char* op : {"relu", "exp", "log", "tanh", "sigmoid", "sqrt", "absolute", "reciprocal", "leaky_relu", "elu",
                         "clip", "softplus", "sign", "floor", "pow_scalar"}) {
    Case c = unary_case(op, f32({9}), 0, 1);
    c.tolerance = 1e-5;
    c.prepare = [&](std::vector<Tensor>& inputs) {
      std::copy(values.begin(), values.end(), inputs[0].data_as<float>());
    };
    expect_matches(c);
  }
}

TEST(NativeElementwise, DeclinesWithAReason) {
  Case c;
  c.op = "add";
  c.inputs = {f32({2, 16, 4, 4}, "aBcd16b"), f32({4})};
  c.outputs = {f32({2, 16, 4, 4}, "aBcd16b")};
  const BareNode node(c);
  std::string why_not;
  EXPECT_EQ(make_native(node.signature, Isa::baseline, 1, why_not), nullptr);
  EXPECT_NE(why_not.find("broadcast to layout aBcd16b"), std::string::npos) << why_not;
}

}  // namespace
}  // namespace weft
