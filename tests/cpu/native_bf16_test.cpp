// What holds for kernels on bf16 numbers beyond being close to the reference: each result is rounded once, to nearest
// with ties to even; NaN, infinities, signed zeros and subnormal numbers come through.
#include <limits>

#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;
using Dims = std::vector<int64_t>;

TensorType bf16(Shape shape, const std::string& layout = "") {
  const int rank = shape.rank();
  return {DType::bf16, std::move(shape), parse_layout(layout, rank)};
}

Tensor bf16_tensor(const std::vector<float>& values, Shape shape) {
  Tensor tensor(DType::bf16, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i)
    store_element(DType::bf16, tensor.data(), static_cast<int64_t>(i), static_cast<double>(values[i]));
  return tensor;
}

/// The results of a node on every instruction set that this CPU has.
std::vector<Tensor> first_results(const Case& c, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> results;
  const BareNode node(c);
  for (const auto isa : available_isas()) {
    std::string why_not;
    const auto kernel = make_native(node.signature, isa, 2, why_not);
    if (!kernel) ADD_FAILURE() << c.op << " declined: " << why_not;
    if (kernel) results.push_back(run_kernel(*kernel, node.signature, inputs)[0]);
  }
  return results;
}

double element(const Tensor& tensor, int64_t index) { return load_element(tensor.dtype(), tensor.data(), index); }

TEST(NativeBf16, EveryNumberWidensAndReturns) {
  Tensor all(DType::bf16, {65536});
  for (int64_t i = 0; i < 65536; ++i) all.data_as<uint16_t>()[i] = static_cast<uint16_t>(i);
  Case widen, narrow;
  widen.op = narrow.op = "cast";
  widen.inputs = narrow.outputs = {bf16({65536})};
  widen.outputs = narrow.inputs = {f32({65536})};
  for (const Tensor& wide : first_results(widen, {all}))
    for (const Tensor& back : first_results(narrow, {wide}))
      for (int64_t i = 0; i < 65536; ++i) {
        const uint16_t bits = all.data_as<uint16_t>()[i];
        const bool is_nan = (bits & 0x7fff) > 0x7f80;
        ASSERT_EQ(wide.data_as<uint32_t>()[i], static_cast<uint32_t>(bits) << 16);
        ASSERT_EQ(back.data_as<uint16_t>()[i], is_nan ? bits | 0x40 : bits);
      }
}

TEST(NativeBf16, RoundsEveryKindOfFloatToNearestEven) {
  // Each sign and exponent, with mantissas on ties and beside them. In every place of a vector.
  std::vector<uint32_t> patterns;
  for (uint32_t top = 0; top < 512; ++top)
    for (const uint32_t mantissa :
         {0x0u, 0x1u, 0x7fffu, 0x8000u, 0x8001u, 0x17fffu, 0x18000u, 0x18001u, 0x7f7fffu, 0x7f8000u, 0x7fffffu})
      patterns.push_back(top << 23 | mantissa);
  const auto count = static_cast<int64_t>(patterns.size());
  Case c;
  c.op = "cast";
  c.inputs = {f32({count})};
  c.outputs = {bf16({count})};
  Tensor x(c.inputs[0]);
  std::memcpy(x.data(), patterns.data(), patterns.size() * 4);
  for (const Tensor& y : first_results(c, {x}))
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(y.data_as<uint16_t>()[i], f32_to_bf16(x.data_as<float>()[i]))
          << std::hex << patterns[static_cast<size_t>(i)];
}

TEST(NativeBf16, CastsWithoutLeavingTheirLayout) {
  const Shape shape{2, 21, 5, 7};
  for (const std::string layout : {"acdb", "aBcd16b", "aBcd32b"}) {
    Case c;
    c.op = "cast";
    c.inputs = {f32(shape, layout)};
    c.outputs = {bf16(shape, layout)};
    expect_matches_reference(c);
    std::swap(c.inputs, c.outputs);
    expect_matches_reference(c);
  }
}

TEST(NativeBf16, AFusedProgramRoundsOnlyItsResults) {
  Case c;
  c.op = "fused_elementwise";
  c.inputs = c.outputs = {bf16({40})};
  c.attributes = {{"program", std::string("add_scalar(0,256.0);add_scalar(1,-256.0)")}, {"results", Dims{2}}};
  // 256 + 1/2 is no bf16 number: rounded in between, nothing but 0 would be left.
  for (const Tensor& y : first_results(c, {bf16_tensor(std::vector<float>(40, 0.5f), {40})}))
    for (int64_t i = 0; i < 40; ++i) ASSERT_EQ(element(y, i), 0.5);
}

TEST(NativeBf16, OverlappingWindowsAddUpTheirGradientsBeforeRounding) {
  // The middle of 3 x 3 pixels is in all four windows. 1 + 3/512 is nearer to 1 + 4/512, a bf16 number, than to 1;
  // adding 1/512 three times with rounding in between would stay at 1.
  Case c;
  c.op = "max_pool2d_backward";
  c.inputs = {bf16({1, 1, 2, 2}), bf16({1, 1, 3, 3}), bf16({1, 1, 2, 2})};
  c.outputs = {bf16({1, 1, 3, 3})};
  c.attributes = {{"kernel", Dims{2, 2}}, {"stride", Dims{1, 1}}, {"padding", Dims{0, 0}}};
  const float small = 1.0f / 512;
  for (const Tensor& dx : first_results(
           c, {bf16_tensor({1, small, small, small}, {1, 1, 2, 2}),
               bf16_tensor({0, 0, 0, 0, 9, 0, 0, 0, 0}, {1, 1, 3, 3}), bf16_tensor({9, 9, 9, 9}, {1, 1, 2, 2})})) {
    EXPECT_EQ(element(dx, 4), 1 + 4.0 / 512);
    EXPECT_EQ(element(dx, 0), 0);
  }
}

TEST(NativeBf16, SumsManyTermsInFull) {
  Case c;
  c.op = "reduce_sum";
  c.inputs = {bf16({3000, 37})};
  c.outputs = {f32({37})};
  c.attributes = {{"axes", Dims{0}}, {"keep_dims", false}};
  for (const Tensor& sum : first_results(c, {bf16_tensor(std::vector<float>(3000 * 37, 0.5f), {3000, 37})}))
    for (int64_t i = 0; i < 37; ++i) ASSERT_EQ(element(sum, i), 1500);
}

TEST(NativeBf16, SpecialValuesPassThroughWhatOnlyChooses) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float smallest = 9.1835496157991211560057541970e-41f;  // 2^-133, the smallest bf16 number
  std::vector<float> values{infinity, -infinity, nan, 0.0f, -0.0f, smallest, -smallest, 3.3895313892515355e38f};
  while (values.size() < 40) values.push_back(values[values.size() - 8]);  // whole vectors and a rest
  for (const char* op : {"negate", "absolute", "relu", "add"}) {
    Case c;
    c.op = op;
    const bool binary = c.op == "add";
    c.inputs.assign(binary ? 2 : 1, bf16({40}));
    c.outputs = {bf16({40})};
    std::vector<Tensor> inputs{bf16_tensor(values, {40})};
    if (binary) inputs.push_back(bf16_tensor(std::vector<float>(40, -0.0f), {40}));
    for (const Tensor& y : first_results(c, inputs))
      for (int64_t i = 0; i < 40; ++i) {
        const float x = values[static_cast<size_t>(i)];
        const float expected = c.op == "negate"     ? -x
                               : c.op == "absolute" ? std::abs(x)
                               : c.op == "relu"     ? (x < 0 ? 0.0f : x)
                                                    : x;
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(element(y, i))) << op << " " << i;
          continue;
        }
        ASSERT_EQ(element(y, i), static_cast<double>(expected)) << op << " " << i;
        ASSERT_EQ(std::signbit(element(y, i)), std::signbit(expected)) << op << " " << i;
      }
  }
}

TEST(NativeBf16, ANaNReachesEveryResultOfItsChannel) {
  for (const std::string layout : {"", "acdb", "aBcd16b"}) {
    Case c;
    c.op = "batch_norm";
    const TensorType image = bf16({2, 21, 5, 7}, layout), channel = f32({21});
    c.inputs = {image, channel, channel};
    c.outputs = {image, channel, channel};
    c.attributes = {{"epsilon", 1e-5}, {"activation", std::string("relu")}};
    std::vector<float> values(2 * 21 * 5 * 7, 0.25f);
    values[17 * 35 + 3] = std::numeric_limits<float>::quiet_NaN();
    Tensor ones(channel), zeros(channel);
    for (int64_t i = 0; i < 21; ++i) {
      ones.data_as<float>()[i] = 1;
      zeros.data_as<float>()[i] = 0;
    }
    const Tensor x = bf16_tensor(values, {2, 21, 5, 7}).with_layout(image.layout);
    for (const Tensor& y : first_results(c, {x, ones, zeros})) {
      const Tensor plain = y.with_layout({});
      for (int64_t i = 0; i < plain.elements(); ++i)
        ASSERT_EQ(std::isnan(element(plain, i)), i / 35 % 21 == 17) << layout << " " << i;
    }
  }
}

TEST(NativeBf16, DeclinesMixedImages) {
  Case c;
  c.op = "batch_norm";
  c.inputs = {bf16({2, 16, 4, 4}), f32({16}), f32({16})};
  c.outputs = {f32({2, 16, 4, 4}), f32({16}), f32({16})};
  c.attributes = {{"epsilon", 1e-5}, {"activation", std::string("none")}};
  const BareNode node(c);
  std::string why_not;
  EXPECT_EQ(make_native(node.signature, Isa::baseline, 1, why_not), nullptr);
  EXPECT_NE(why_not.find("images are f32 or bf16"), std::string::npos) << why_not;
}

}  // namespace
}  // namespace weft
