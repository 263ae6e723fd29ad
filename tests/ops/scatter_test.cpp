// Scatters and gather_nd against PyTorch, and the examples of ONNX's reference.
#include <cmath>

#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

class Scatter : public ValuesTest {
 protected:
  ValueId longs(const Shape& shape, const std::vector<int64_t>& values) {
    Tensor tensor(DType::i64, shape);
    std::copy(values.begin(), values.end(), tensor.data_as<int64_t>());
    return given(tensor);
  }
};

TEST_F(Scatter, ElementsOfRows) {
  // x = leaf(ramp(3, 4)); u = leaf(ramp(3, 2, scale=1)); i = torch.tensor([[0, 3], [1, 0], [2, 3]])
  // y = x.scatter(1, i, u)
  const ValueId x = given(ramp({3, 4})), u = given(ramp({3, 2}, 13, 1));
  const ValueId y = scatter_elements(graph_, x, given(integers({3, 2}, {0, 3, 1, 0, 2, 3})), u);
  expect_value(y, {3, 4}, {-6, -0.25, 1, -1, -4, 4, -0.5, 0.75, -1.25, 0, 1, 6});
  expect_gradients(y, {x, u}, {{0, -0.25, 1, 0, 0, 0, -0.5, 0.75, -1.25, 0, 0, 0}, {-1.5, -1, 1.5, 0.25, 1.25, -0.75}});
}

TEST_F(Scatter, ElementsAddedUp) {
  // i = torch.tensor([[0, 0], [1, 0], [2, 2]]); y = x.scatter_add(1, i, u)
  const ValueId x = given(ramp({3, 4})), u = given(ramp({3, 2}, 13, 1));
  const ValueId y = scatter_elements(graph_, x, longs({3, 2}, {0, 0, 1, 0, 2, 2}), u, 1, "add");
  expect_value(y, {3, 4}, {-8.5, -0.25, 1, -1, -3.75, 5.5, -0.5, 0.75, -1.25, 0, 8.25, -0.75});
  expect_gradients(
      y, {x, u},
      {{-1.5, -0.25, 1, -1, 0.25, 1.5, -0.5, 0.75, -1.25, 0, 1.25, -0.75}, {-1.5, -1.5, 1.5, 0.25, 1.25, 1.25}});
}

TEST_F(Scatter, ElementsAddedToAPartAlongTheFirstAxis) {
  // x = leaf(ramp(3, 4)); i = torch.tensor([[2, 0], [0, 2]]); u = leaf(ramp(2, 2, scale=1)); y = x.scatter_add(0, i, u)
  const ValueId x = given(ramp({3, 4})), u = given(ramp({2, 2}, 13, 1));
  const ValueId y = scatter_elements(graph_, x, given(integers({2, 2}, {2, 0, 0, 2})), u, 0, "add");
  expect_value(y, {3, 4}, {2.5, -1.25, 1, -1, 0.25, 1.5, -0.5, 0.75, -7.25, -4, 1.25, -0.75});
  expect_gradients(y, {x, u},
                   {{-1.5, -0.25, 1, -1, 0.25, 1.5, -0.5, 0.75, -1.25, 0, 1.25, -0.75}, {-1.25, -0.25, -1.5, 0}});
}

TEST_F(Scatter, NegativeIndicesCountFromTheEnd) {
  // ONNX's test_scatter_elements_with_negative_indices
  const ValueId x = given(floats({1, 5}, {1, 2, 3, 4, 5})), u = given(floats({1, 2}, {1.1F, 2.1F}));
  expect_value(scatter_elements(graph_, x, longs({1, 2}, {1, -3}), u, 1), {1, 5}, {1, 1.1, 2.1, 4, 5});
}

TEST_F(Scatter, OfSeveralUpdatesOfOnePlaceTheLastCounts) {
  const ValueId x = given(floats({3}, {1, 2, 3})), u = given(floats({3}, {10, 20, 30}));
  const ValueId y = scatter_elements(graph_, x, given(integers({3}, {1, -2, 0})), u);
  expect_value(y, {3}, {30, 20, 3});
  expect_gradients(y, {x, u}, {{0, 0, 1}, {0, -0.25, -1.5}});
}

TEST_F(Scatter, UpdatesOutOfRangeAreLeftOut) {
  const ValueId x = given(floats({3}, {1, 2, 3})), u = given(floats({3}, {10, 20, 30}));
  for (const char* reduction : {"none", "add"}) {
    SCOPED_TRACE(reduction);
    const ValueId y = scatter_elements(graph_, x, given(integers({3}, {3, -4, 99})), u, 0, reduction);
    expect_value(y, {3}, {1, 2, 3});
    expect_gradients(y, {x, u}, {{-1.5, -0.25, 1}, {0, 0, 0}});
  }
}

TEST_F(Scatter, ReductionsJoinWhatIsThere) {
  const ValueId x = given(floats({3}, {1, 2, 3})), u = given(floats({4}, {-2, 4, 5, 2.5F}));
  const ValueId i = given(integers({4}, {0, 1, 1, 2}));
  expect_value(scatter_elements(graph_, x, i, u, 0, "multiply"), {3}, {-2, 40, 7.5});
  expect_value(scatter_elements(graph_, x, i, u, 0, "maximum"), {3}, {1, 5, 3});
  expect_value(scatter_elements(graph_, x, i, u, 0, "minimum"), {3}, {-2, 2, 2.5});
}

TEST_F(Scatter, ExtremaKeepNotANumber) {
  const ValueId x = given(floats({2}, {NAN, 2})), u = given(floats({2}, {1, NAN}));
  for (const char* reduction : {"maximum", "minimum"}) {
    const Tensor y = value_of(scatter_elements(graph_, x, given(integers({2}, {0, 1})), u, 0, reduction));
    EXPECT_TRUE(std::isnan(y.data_as<float>()[0])) << reduction;
    EXPECT_TRUE(std::isnan(y.data_as<float>()[1])) << reduction;
  }
}

TEST_F(Scatter, AProductHasNoGradient) {
  const ValueId x = given(floats({3}, {1, 2, 3})), u = given(floats({1}, {4}));
  const ValueId y = scatter_elements(graph_, x, given(integers({1}, {0})), u, 0, "multiply", "scaled");
  try {
    add_gradients(graph_, reduce_sum(graph_, y), {x});
    FAIL() << "is differentiated";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "[scatter_elements] 'scaled': reduction=\"multiply\" has no gradient, those of none and add have; keep "
        "it out of the loss");
  }
}

TEST_F(Scatter, ReductionOfAnotherName) {
  const ValueId x = input("x", {3}), i = input("i", {2}, DType::i32), u = input("u", {2});
  EXPECT_THAT(shape_error([&] { scatter_elements(graph_, x, i, u, 0, "mul", "s"); }),
              ::testing::StartsWith("[scatter_elements] 's': reduction \"mul\" is not known"));
}

TEST_F(Scatter, IndicesThatAreLargerThanTheData) {
  const ValueId x = input("x", {3, 4}), i = input("i", {4, 2}, DType::i32), u = input("u", {4, 2});
  EXPECT_EQ(shape_error([&] { scatter_elements(graph_, x, i, u, 1, "none", "s"); }),
            "[scatter_elements] 's': 'i' (4,2) must have the rank of 'x' (3,4), and be no larger in any axis but 1");
  EXPECT_EQ(shape_error([&] { gather_elements(graph_, x, i, 1, "g"); }),
            "[gather_elements] 'g': 'i' (4,2) must have the rank of 'x' (3,4), and be no larger in any axis but 1");
}

TEST_F(Scatter, GatherElementsOfAPartFromTheEnd) {
  // x = leaf(ramp(3, 4)); i = torch.tensor([[3, 0], [1, 1]]); y = x[:2].gather(1, i)
  const ValueId x = given(ramp({3, 4}));
  for (const ValueId i : {given(integers({2, 2}, {-1, 0, 1, -3})), longs({2, 2}, {3, -4, -3, 1})}) {
    const ValueId y = gather_elements(graph_, x, i, 1);
    expect_value(y, {2, 2}, {-1, -1.5, 1.5, 1.5});
    expect_gradients(y, {x}, {{-0.25, 0, 0, -1.5, 0, 0, 0, 0, 0, 0, 0, 0}});
  }
}

TEST_F(Scatter, GatherOfElementsByVectors) {
  // x = leaf(ramp(3, 4)); y = x[[2, 0, 2], [1, 3, 1]]
  const ValueId x = given(ramp({3, 4})), y = gather_nd(graph_, x, longs({3, 2}, {2, 1, 0, -1, -1, 1}));
  expect_value(y, {3}, {0, -1, 0});
  expect_gradients(y, {x}, {{0, 0, 0, -0.25, 0, 0, 0, 0, 0, -0.5, 0, 0}});
}

TEST_F(Scatter, GatherOfRowsInEachBatch) {
  // x = leaf(ramp(2, 3, 2)); y = torch.stack([x[0, [2, 0]], x[1, [1, 1]]])
  const ValueId x = given(ramp({2, 3, 2}));
  const ValueId y = gather_nd(graph_, x, given(integers({2, 2, 1}, {2, 0, 1, 1})), 1);
  expect_value(y, {2, 2, 2}, {0.25, 1.5, -1.5, -0.25, -1.25, 0, -1.25, 0});
  expect_gradients(y, {x}, {{1, -1, 0, 0, -1.5, -0.25, 0, 0, -0.25, 2.25, 0, 0}});
}

TEST_F(Scatter, GatherOutOfRangeIsNotANumber) {
  const Tensor y = value_of(gather_nd(graph_, given(ramp({3, 2})), longs({3, 1}, {3, 0, -4})));
  for (const int64_t i : {0, 1, 4, 5}) EXPECT_TRUE(std::isnan(y.data_as<float>()[i]));
  EXPECT_EQ(y.data_as<float>()[2], -1.5F);
}

TEST_F(Scatter, VectorsThatNameNoSlices) {
  const ValueId x = input("x", {3, 4}), i = input("i", {2, 3}, DType::i64);
  EXPECT_EQ(shape_error([&] { gather_nd(graph_, x, i, 0, "g"); }),
            "[gather_nd] 'g': the vectors in 'i' (2,3) name slices of 'x' (3,4) by 3 indices each; give 1 to 2");
  EXPECT_EQ(shape_error([&] { gather_nd(graph_, x, i, 2, "g"); }),
            "[gather_nd] 'g': batch_dims=2 of 'x' (3,4) and 'i' (2,3); give a number from 0 to 1");
  EXPECT_EQ(shape_error([&] { gather_nd(graph_, x, input("one", {}, DType::i64), 0, "g"); }),
            "[gather_nd] 'g': 'one' () is a scalar and has no axes to walk; reshape it");
}

TEST_F(Scatter, BatchesThatDiffer) {
  const ValueId x = input("x", {3, 4}), i = input("i", {2, 1}, DType::i64);
  EXPECT_EQ(shape_error([&] { gather_nd(graph_, x, i, 1, "g"); }),
            "[gather_nd] 'g': 'x' (3,4) and 'i' (2,1) differ in their first 1 dimensions, the batches");
}

TEST_F(Scatter, RowsByVectors) {
  // x = leaf(ramp(3, 4)); u = leaf(ramp(2, 4, scale=1)); y = x.index_put((torch.tensor([2, 0]),), u)
  const ValueId x = given(ramp({3, 4})), u = given(ramp({2, 4}, 13, 1));
  const ValueId y = scatter_nd(graph_, x, longs({2, 1}, {-1, 0}), u);
  expect_value(y, {3, 4}, {1, 6, -2, 3, 0.25, 1.5, -0.5, 0.75, -6, -1, 4, -4});
  expect_gradients(y, {x, u},
                   {{0, 0, 0, 0, 0.25, 1.5, -0.5, 0.75, 0, 0, 0, 0}, {-1.25, 0, 1.25, -0.75, -1.5, -0.25, 1, -1}});
}

TEST_F(Scatter, RowsAddedUp) {
  // y = x.index_put((torch.tensor([1, 1]),), u, accumulate=True)
  const ValueId x = given(ramp({3, 4})), u = given(ramp({2, 4}, 13, 1));
  const ValueId y = scatter_nd(graph_, x, given(integers({2, 1}, {1, 1})), u, "add");
  expect_value(y, {3, 4}, {-1.5, -0.25, 1, -1, -4.75, 6.5, 1.5, -0.25, -1.25, 0, 1.25, -0.75});
  expect_gradients(y, {x, u},
                   {{-1.5, -0.25, 1, -1, 0.25, 1.5, -0.5, 0.75, -1.25, 0, 1.25, -0.75},
                    {0.25, 1.5, -0.5, 0.75, 0.25, 1.5, -0.5, 0.75}});
}

TEST_F(Scatter, UpdatesOfAnotherShape) {
  const ValueId x = input("x", {3, 4}), i = input("i", {2, 1}, DType::i64), u = input("u", {2, 3});
  EXPECT_EQ(shape_error([&] { scatter_nd(graph_, x, i, u, "none", 0, "s"); }),
            "[scatter_nd] 's': 'i' (2,1) names slices of 'x' (3,4) that take updates of (2,4), got 'u' (2,3)");
}

}  // namespace
}  // namespace weft::ops
