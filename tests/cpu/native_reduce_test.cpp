#include <limits>

#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;
using Axes = std::vector<int64_t>;

TEST(NativeReduce, MatchesReferenceOverAnyAxes) {
  struct Row {
    Shape in;
    Axes axes;
    Shape out;
  };
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"})
    for (const Row& row : {Row{{300, 301}, {}, {}}, Row{{300, 301}, {0}, {301}}, Row{{300, 301}, {-1}, {300}},
                           Row{{7, 5, 11, 13}, {0, 2, 3}, {5}}, Row{{7, 5, 11, 13}, {1, 3}, {7, 11}},
                           Row{{7, 5, 11, 13}, {0, 2}, {5, 13}}, Row{{4, 5, 600}, {0, 1}, {600}},
                           Row{{40000, 3}, {0}, {3}}, Row{{2, 50000}, {1}, {2}}, Row{{3, 1, 4}, {1}, {3, 4}},
                           Row{{}, {}, {}}, Row{{1, 1}, {0}, {1}}, Row{{17}, {0}, {}}}) {
      Case c;
      c.op = op;
      c.inputs = {f32(row.in)};
      c.outputs = {f32(row.out)};
      c.attributes = {{"axes", row.axes}, {"keep_dims", false}};
      c.low = c.op == "reduce_prod" ? 0.99 : 0.5;  // products that no float holds would all be equal
      c.high = c.op == "reduce_prod" ? 1.01 : 1;
      expect_matches_reference(c);
      c.inputs[0].dtype = DType::bf16;  // with the result in f32, as gradients of biases are
      expect_matches_rounded_reference(c);
      expect_matches_rounded_reference(in_bf16(c));
    }
}

TEST(NativeReduce, MillionsOfEqualTermsLoseNothing) {
  Case c;
  c.op = "reduce_sum";
  c.inputs = {f32({4'000'000})};
  c.outputs = {f32({})};
  c.attributes = {{"axes", Axes{}}, {"keep_dims", false}};
  const BareNode node(c);
  Tensor x(c.inputs[0]);
  std::fill(x.data_as<float>(), x.data_as<float>() + x.elements(), 0.1f);
  for (const auto isa : available_isas()) {
    std::string why_not;
    const auto sum = run_kernel(*make_native(node.signature, isa, 2, why_not), node.signature, {x})[0];
    EXPECT_NEAR(static_cast<double>(sum.data_as<float>()[0]), 4e5, 0.5);
  }
}

TEST(NativeReduce, ExtremaAreNaNWhereverOneLies) {
  for (const char* op : {"reduce_max", "reduce_min"})
    for (const int64_t place : {0, 1, 31, 500, 16383, 39998, 39999})
      for (const auto& [axes, out] :
           {std::pair{Axes{}, Shape{}}, std::pair{Axes{0}, Shape{200}}, std::pair{Axes{1}, Shape{200}}}) {
        Case c;
        c.op = op;
        c.inputs = {f32({200, 200})};
        c.outputs = {f32(out)};
        c.attributes = {{"axes", axes}, {"keep_dims", false}};
        c.prepare = [place](std::vector<Tensor>& inputs) {
          inputs[0].data_as<float>()[place] = std::numeric_limits<float>::quiet_NaN();
        };
        expect_matches_reference(c);
        expect_matches_rounded_reference(in_bf16(c));
      }
}

Case argmax_case(const Shape& in, const Shape& out, int64_t axis) {
  Case c;
  c.op = "argmax";
  c.inputs = {f32(in)};
  c.outputs = {i32(out)};
  c.attributes = {{"axis", axis}, {"keep_dims", false}};
  return c;
}

std::vector<Case> argmax_cases() {
  return {argmax_case({7}, {}, 0),
          argmax_case({100000}, {}, -1),
          argmax_case({33, 10}, {33}, 1),
          argmax_case({3, 40000}, {3}, -1),
          argmax_case({70, 1000}, {70}, -1),
          argmax_case({1000, 70}, {70}, 0),
          argmax_case({3, 50, 601}, {3, 601}, 1),
          argmax_case({2, 3, 4, 5}, {2, 4, 5}, -3),
          argmax_case({5, 1}, {5}, 1)};
}

TEST(NativeArgmax, MatchesReference) {
  for (const Case& c : argmax_cases()) expect_matches_reference(c);
}

TEST(NativeArgmax, TakesTheFirstOfManyEqualOnes) {
  for (Case c : argmax_cases()) {
    c.prepare = [](std::vector<Tensor>& inputs) {
      for (int64_t i = 0; i < inputs[0].elements(); ++i)
        inputs[0].data_as<float>()[i] = std::round(inputs[0].data_as<float>()[i] * 2);
    };
    expect_matches_reference(c);
  }
}

TEST(NativeArgmax, FindsInfinitiesAndTheFirstNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (Case c : argmax_cases())
    for (const bool ascending : {false, true})
      for (const float special : {-infinity, infinity, nan}) {
        c.prepare = [=](std::vector<Tensor>& inputs) {
          const int64_t count = inputs[0].elements();
          for (int64_t i = 0; ascending && i < count; ++i) inputs[0].data_as<float>()[i] = static_cast<float>(i);
          if (special < 0) std::fill(inputs[0].data_as<float>(), inputs[0].data_as<float>() + count, special);
          for (int64_t i = count / 3; i < count; i += 1 + count / 5) inputs[0].data_as<float>()[i] = special;
        };
        expect_matches_reference(c);
      }
}

TEST(NativeSoftmax, MatchesReference) {
  for (const char* op : {"softmax", "log_softmax"})
    for (const Shape& shape : {Shape{7}, Shape{50, 10}, Shape{3, 4, 5, 129}, Shape{2, 1000}}) {
      Case c;
      c.op = op;
      c.inputs = c.outputs = {f32(shape)};
      c.attributes = {{"axis", int64_t{-1}}};
      c.low = -30;
      c.high = 30;
      expect_matches_reference(c);
      expect_matches_rounded_reference(in_bf16(c));
    }
}

TEST(NativeSoftmax, BackwardMatchesReference) {
  for (const Shape& shape : {Shape{7}, Shape{50, 10}, Shape{3, 4, 5, 129}, Shape{2, 1000}}) {
    Case c;
    c.op = "softmax_backward";
    c.inputs = {f32(shape), f32(shape)};
    c.outputs = {f32(shape)};
    c.attributes = {{"axis", int64_t{-1}}};
    expect_matches_reference(c);
    expect_matches_rounded_reference(in_bf16(c));
  }
}

TEST(NativeSoftmax, SurvivesMaskedScores) {
  Case c;
  c.op = "softmax";
  c.inputs = c.outputs = {f32({3, 40})};
  c.attributes = {{"axis", int64_t{1}}};
  c.prepare = [](std::vector<Tensor>& inputs) {
    for (int i = 0; i < 39; ++i) inputs[0].data_as<float>()[i] = -1e30f;
    inputs[0].data_as<float>()[41] = -std::numeric_limits<float>::infinity();
    inputs[0].data_as<float>()[85] = std::numeric_limits<float>::quiet_NaN();
  };
  expect_matches_reference(c);
  expect_matches_rounded_reference(in_bf16(c));
}

TEST(NativeSoftmax, InBf16IsAsAccurateAsItsRounding) {
  for (const int64_t width : {3, 16, 65, 131}) {
    Case c;
    c.op = "softmax";
    c.inputs = c.outputs = {f32({200, width})};
    c.attributes = {{"axis", int64_t{-1}}};
    c.low = -12;
    c.high = 12;
    const Tensor x = converted(plain_inputs(c)[0], DType::bf16);
    const BareNode node(in_bf16(c));
    for (const auto isa : available_isas()) {
      std::string why_not;
      const auto y = run_kernel(*make_native(node.signature, isa, 2, why_not), node.signature, {x})[0];
      for (int64_t row = 0; row < 200; ++row) {
        double sum = 0;
        for (int64_t i = row * width; i < (row + 1) * width; ++i)
          sum += std::exp(load_element(DType::bf16, x.data(), i));
        for (int64_t i = row * width; i < (row + 1) * width; ++i) {
          const double exact = std::exp(load_element(DType::bf16, x.data(), i)) / sum;
          const double half_unit = std::ldexp(1, std::ilogb(exact) - 8);
          ASSERT_NEAR(load_element(DType::bf16, y.data(), i), exact, 1.15 * half_unit)
              << name_of(isa) << ", width " << width;
        }
      }
    }
  }
}

TEST(NativeSoftmax, MasksAreZerosInBf16) {
  Case c;
  c.op = "softmax";
  c.inputs = c.outputs = {{DType::bf16, {2, 40}, {}}};
  c.attributes = {{"axis", int64_t{-1}}};
  Tensor x(c.inputs[0]);
  for (int64_t i = 0; i < 80; ++i) store_element(DType::bf16, x.data(), i, i % 40 < 7 ? 100.0 : -INFINITY);
  store_element(DType::bf16, x.data(), 60, -90.0);
  const BareNode node(c);
  for (const auto isa : available_isas()) {
    std::string why_not;
    const auto y = run_kernel(*make_native(node.signature, isa, 1, why_not), node.signature, {x})[0];
    for (int64_t i = 0; i < 80; ++i)
      EXPECT_EQ(load_element(DType::bf16, y.data(), i), i % 40 < 7 ? 0.142578125 : 0) << name_of(isa);
  }
}

TEST(NativeSoftmax, DeclinesOtherAxes) {
  Case c;
  c.op = "softmax";
  c.inputs = c.outputs = {f32({3, 40})};
  c.attributes = {{"axis", int64_t{0}}};
  const BareNode node(c);
  std::string why_not;
  EXPECT_EQ(make_native(node.signature, Isa::baseline, 1, why_not), nullptr);
  EXPECT_EQ(why_not, "axis 0 is not the last");
}

std::vector<Case> loss_cases(const char* op) {
  std::vector<Case> cases;
  for (const double smoothing : {0.0, 0.1})
    for (const Shape& shape : {Shape{33, 10}, Shape{5, 1000}}) {
      Case c;
      c.op = op;
      c.inputs = {f32(shape), i32({shape[0]})};
      c.outputs = {f32({shape[0]})};
      c.attributes = {{"label_smoothing", smoothing}, {"ignore_index", int64_t{-100}}};
      c.low = -8;
      c.high = 8;
      cases.push_back(c);
    }
  return cases;
}

TEST(NativeLoss, CrossEntropyMatchesReference) {
  for (const Case& c : loss_cases("cross_entropy")) expect_matches_reference(c);
}

TEST(NativeLoss, CrossEntropyBackwardMatchesReference) {
  for (Case c : loss_cases("cross_entropy_backward")) {
    c.inputs.insert(c.inputs.begin(), c.outputs[0]);
    c.outputs[0] = c.inputs[1];
    expect_matches_reference(c);
  }
}

TEST(NativeLoss, IgnoredLabelsMatchReference) {
  for (Case c : loss_cases("cross_entropy")) {
    c.attributes.set("ignore_index", int64_t{3});
    c.integer_bound = 5;
    expect_matches_reference(c);
    c.op = "cross_entropy_backward";
    c.inputs.insert(c.inputs.begin(), c.outputs[0]);
    c.outputs[0] = c.inputs[1];
    expect_matches_reference(c);
  }
}

TEST(NativeLoss, ALabelThatIsNoClassGivesNaN) {
  for (Case c : loss_cases("cross_entropy")) {
    c.prepare = [](std::vector<Tensor>& inputs) { inputs[1].data_as<int32_t>()[2] = -1; };
    expect_matches_reference(c);
  }
}

TEST(NativeLoss, CountsInManyLongRows) {
  Case c;
  c.op = "count_correct";
  c.inputs = {f32({40, 5000}), i32({40})};
  c.outputs = {f32({})};
  c.integer_bound = 3;
  c.prepare = [](std::vector<Tensor>& inputs) {
    for (int64_t row = 0; row < 40; ++row) inputs[0].data_as<float>()[row * 5000 + row % 3] = 2;
    inputs[0].data_as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  };
  expect_matches_reference(c);
}

TEST(NativeLoss, CountsTheFirstLargestLogit) {
  Case c;
  c.op = "count_correct";
  c.inputs = {f32({500, 10}), i32({500})};
  c.outputs = {f32({})};
  c.prepare = [](std::vector<Tensor>& inputs) {
    for (int64_t i = 0; i < inputs[0].elements(); ++i)
      inputs[0].data_as<float>()[i] = std::round(inputs[0].data_as<float>()[i] * 3);  // many ties
  };
  expect_matches_reference(c);
}

}  // namespace
}  // namespace weft
