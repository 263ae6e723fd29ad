// How much workspace the pass grants: what never hurts to all, more to those beside which there is room.
#include "weft/passes/layout/mark_winograd.h"

#include <gtest/gtest.h>

#include "tests/passes/fake_backend.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"

namespace weft::passes {
namespace {

class FilterByTilesTest : public testing::Test {
 protected:
  /// Three convolutions that put out 64 MB each: 24 MB are granted to every one.
  Graph chain(const std::string& more = "") {
    const std::string text = R"(graph "g" {
      batch %x "x" : f32[16,64,125,125]
      batch %w "w" : f32[64,64,3,3]
      %a = conv2d(%x, %w) {padding=[1,1]} : f32[16,64,125,125]
      %b = conv2d(%a, %w) {padding=[1,1]} : f32[16,64,125,125]
      %c = conv2d(%b, %w) {padding=[1,1]} : f32[16,64,125,125]
      output "c" %c
)";
    return parse_graph(text + more + "}", registry_);
  }

  /// The attribute of each convolution, where planning sees these steps.
  std::vector<int64_t> granted(const std::vector<PlannedMemory::Step>& steps, const std::string& more = "") {
    PassContext context{backend_};
    context.forecast = PlannedMemory{steps, 0};
    std::vector<int64_t> result;
    const Graph marked = mark_winograd(chain(more), context);
    for (const Node& node : marked.nodes())
      if (node.op->name == "conv2d") result.push_back(node.attributes.integer("winograd"));
    return result;
  }

  OpRegistry registry_ = ops::make_registry();
  test::FakeBackend backend_;
};

constexpr int64_t kMB = 1'000'000, kGranted = 24 * kMB;

TEST_F(FilterByTilesTest, GrantsAnEighthOfWhatConvolutionsPutOut) {
  EXPECT_EQ(granted({{"a", 5 * kMB, 100 * kMB}, {"b", 0, 200 * kMB}, {"c", 24 * kMB, 300 * kMB}}),
            (std::vector<int64_t>{kGranted, kGranted, kGranted}));
}

TEST_F(FilterByTilesTest, GrantsAnEighthOfTheStatesWhereTheyAreLarger) {
  // 160 MB of weights and as much of their momentum.
  EXPECT_EQ(granted({{"a", 0, 100 * kMB}, {"b", 0, 200 * kMB}, {"c", 0, 300 * kMB}}, R"(
      parameter %p "p" : f32[40000000]
      state %v "v" : f32[40000000]
      %sum = add(%p, %v) : f32[40000000]
      output "sum" %sum
)"),
            (std::vector<int64_t>{40 * kMB, 40 * kMB, 40 * kMB}));
}

TEST_F(FilterByTilesTest, GrantsMoreWhereLessLives) {
  // Without workspaces 300 MB live at the fullest step: 324 MB may.
  EXPECT_EQ(granted({{"a", 100 * kMB, 200 * kMB}, {"b", 120 * kMB, 324 * kMB}, {"c", 60 * kMB, 360 * kMB}}),
            (std::vector<int64_t>{120 * kMB, 120 * kMB, kGranted}));
}

TEST_F(FilterByTilesTest, GrantsMoreWhereItIsGradientsThatTravelThatFillMemory) {
  const std::vector<PlannedMemory::Step> steps = {
      {"a", 100 * kMB, 200 * kMB}, {"b", 80 * kMB, 380 * kMB}, {"c", 60 * kMB, 320 * kMB}};
  EXPECT_EQ(granted(steps), (std::vector<int64_t>{100 * kMB, kGranted, 100 * kMB}));
  EXPECT_EQ(granted(steps, R"(
      %d = reshape(%b) {shape=[16000000]} : f32[16000000]
      %e = all_reduce(%d) : f32[16000000]
      output "e" %e
)"),
            (std::vector<int64_t>{100 * kMB, 100 * kMB, 100 * kMB}));
}

TEST_F(FilterByTilesTest, AsksForThePlanOfConvolutionsThatTakeWhatTheyWant) {
  const std::optional<Graph> asked = mark_winograd_everywhere(chain(), {backend_});
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->nodes()[0].attributes.integer("winograd"), kMostElements);
}

TEST_F(FilterByTilesTest, AsksNothingWhereNoKernelTakesWorkspace) {
  const Graph graph = parse_graph(R"(graph "g" {
    batch %x "x" : f32[2,64,9,9]
    batch %w "w" : f32[64,64,1,1]
    %y = conv2d(%x, %w) : f32[2,64,9,9]
    output "y" %y
  })",
                                  registry_);
  EXPECT_FALSE(mark_winograd_everywhere(graph, {backend_}));
}

TEST_F(FilterByTilesTest, GrantsNothingWhereThatIsNotWanted) {
  PassContext context{backend_};
  context.grants_workspace = false;
  EXPECT_FALSE(mark_winograd_everywhere(chain(), context));
  const Graph marked = mark_winograd(chain(), context);
  for (const Node& node : marked.nodes()) EXPECT_EQ(node.attributes.integer("winograd"), 0);
}

TEST_F(FilterByTilesTest, GrantsTheSameToAllWhereNothingPlans) {
  const Graph marked = mark_winograd(chain(), {backend_});
  for (const Node& node : marked.nodes()) EXPECT_EQ(node.attributes.integer("winograd"), kGranted);
}

}  // namespace
}  // namespace weft::passes
