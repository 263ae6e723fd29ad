// What the operators that look up and place elements refuse: weft/onnx/operators/indexing.cpp. ONNX's own tests check
// what they compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/onnx/convert_support.h"
#include "tests/support/error_of.h"

namespace weft::onnx {
namespace {

using test::error_of;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

std::string refusal(ConvertedNode& node) {
  return error_of([&] { node.convert(); });
}

TEST(OnnxIndexing, TopKOfMoreThanThereAre) {
  for (const int64_t k : {int64_t{-1}, int64_t{4}, int64_t{1} << 62}) {
    ConvertedNode node(make_node("TopK", {"x", "k"}, {"values", "places"}));
    node.brings(reals({3}, {1, 2, 3})).knows(wholes({1}, {k}));
    EXPECT_EQ(refusal(node), fmt::format("[top_k] 'values': k={} of the 3 elements along axis 0 of 'x' (3); give a "
                                         "number from 0 to 3",
                                         k));
  }
}

TEST(OnnxIndexing, TopKThatOnlyARunKnows) {
  ConvertedNode node(make_node("TopK", {"x", "k"}, {"values", "places"}));
  node.brings(reals({3}, {1, 2, 3})).brings(wholes({1}, {2}));
  try {
    node.convert();
    FAIL() << "is converted";
  } catch (const NeedsValue& needs) {
    EXPECT_EQ(needs.value, "k");
  }
}

TEST(OnnxIndexing, TopKOfVersion1HasItsNumberAsAnAttribute) {
  ConvertedNode node(make_node("TopK", {"x"}, {"values", "places"}, {{"k", int64_t{2}}}), 9);
  const Tensor values = node.brings(reals({4}, {1, 4, 2, 3})).value();
  ASSERT_EQ(values.shape(), (Shape{2}));
  EXPECT_EQ(values.data_as<float>()[0], 4);
  EXPECT_EQ(values.data_as<float>()[1], 3);
}

TEST(OnnxIndexing, AxesThatAreNone) {
  for (const char* op : {"TopK", "ScatterElements", "Scatter", "GatherElements", "ArgMax"})
    for (const int64_t axis : {int64_t{1}, int64_t{-2}, int64_t{1} << 62}) {
      ConvertedNode node(make_node(op, {"x", "i", "u"}, {"y", "z"}, {{"axis", axis}}));
      node.brings(reals({3}, {1, 2, 3})).knows(wholes({1}, {0})).brings(reals({1}, {1}));
      EXPECT_THAT(refusal(node), HasSubstr(fmt::format("has the axis {}, but its operand has 1 dimensions", axis)))
          << op;
    }
}

TEST(OnnxIndexing, AScatterByAnUnknownReduction) {
  for (const char* op : {"ScatterElements", "ScatterND"}) {
    ConvertedNode node(make_node(op, {"x", "i", "u"}, {"y"}, {{"reduction", std::string("median")}}));
    node.brings(reals({3}, {1, 2, 3})).brings(wholes({1, 1}, {0})).brings(reals({1}, {1}));
    EXPECT_EQ(refusal(node), fmt::format("[{} 'y'] has the unknown reduction 'median'", op));
  }
}

TEST(OnnxIndexing, AScatterOfUpdatesOfAnotherShape) {
  ConvertedNode node(make_node("ScatterND", {"x", "i", "u"}, {"y"}));
  node.brings(reals({3}, {1, 2, 3})).brings(wholes({2, 1}, {0, 1})).brings(reals({1}, {1}));
  EXPECT_THAT(refusal(node), HasSubstr("take updates of (2), got 'u' (1)"));
}

TEST(OnnxIndexing, VectorsOfIndicesThatAreTooLong) {
  ConvertedNode node(make_node("GatherND", {"x", "i"}, {"y"}));
  node.brings(reals({3}, {1, 2, 3})).brings(wholes({1, 2}, {0, 1}));
  EXPECT_THAT(refusal(node), StartsWith("[gather_nd] 'y': the vectors in 'i' (1,2) name slices of 'x' (3) by 2"));
}

TEST(OnnxIndexing, BatchesThatAreNone) {
  for (const int64_t batch_dims : {int64_t{-1}, int64_t{1}, int64_t{1} << 62}) {
    ConvertedNode node(make_node("GatherND", {"x", "i"}, {"y"}, {{"batch_dims", batch_dims}}));
    node.brings(reals({3}, {1, 2, 3})).brings(wholes({1, 1}, {0}));
    EXPECT_THAT(refusal(node), StartsWith(fmt::format("[gather_nd] 'y': batch_dims={} of", batch_dims)));
  }
}

TEST(OnnxIndexing, InputsThatAreMissing) {
  for (const char* op : {"TopK", "ScatterElements", "ScatterND", "GatherND", "GatherElements", "CumSum"}) {
    ConvertedNode node(make_node(op, {"x"}, {"y"}));
    node.brings(reals({3}, {1, 2, 3}));
    EXPECT_THAT(refusal(node), MatchesRegex(fmt::format("\\[{} 'y'\\] its input [12] is missing", op)));
  }
}

}  // namespace
}  // namespace weft::onnx
