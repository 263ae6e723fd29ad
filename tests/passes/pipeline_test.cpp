#include "weft/passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/passes/fake_backend.h"
#include "weft/base/error.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/passes/inference_pipeline.h"
#include "weft/passes/layout/mark_winograd.h"
#include "weft/passes/memory/offload.h"

namespace weft::passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PipelineTest : public testing::Test {
 protected:
  Graph run(const PipelineOptions& options) { return run_pipeline(graph_, {backend_}, options, &reports_); }

  OpRegistry registry_ = ops::make_registry();
  test::FakeBackend backend_;
  Graph graph_ = parse_graph(R"(graph "g" {
    batch %x "x" : f32[4]
    %a = exp(%x) : f32[4]
    %b = exp(%x) : f32[4]
    %c = add(%a, %b) : f32[4]
    %dead = log(%x) : f32[4]
    output "c" %c
  })",
                             registry_);
  std::vector<PassReport> reports_;
};

TEST_F(PipelineTest, EveryPassHasItsOwnNameAndASentence) {
  std::set<std::string> names;
  for (const Pass& pass : pipeline()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_TRUE(pass.summary.ends_with(".")) << pass.name;
  }
}

TEST_F(PipelineTest, ThePassesOfInferenceAreSomeOfAllInTheirOrder) {
  auto next = pipeline().begin();
  for (const Pass& pass : inference_pipeline()) {
    next = std::find_if(next, pipeline().end(), [&](const Pass& other) { return other.name == pass.name; });
    ASSERT_NE(next, pipeline().end()) << pass.name;
    EXPECT_EQ(pass.summary, next->summary);
    ++next;
  }
}

TEST_F(PipelineTest, InferenceComputesWithIntegers) {
  std::set<std::string> names;
  for (const Pass& pass : inference_pipeline()) names.insert(pass.name);
  for (const char* name : {"form_integer_products", "fuse_requantize"}) EXPECT_TRUE(names.contains(name)) << name;
}

TEST_F(PipelineTest, RunsAllPassesInOrderAndReportsEach) {
  const Graph result = run({});
  EXPECT_EQ(result.nodes().size(), 1u) << print_graph(result);
  ASSERT_EQ(reports_.size(), pipeline().size());
  for (size_t index = 0; index < reports_.size(); ++index) EXPECT_EQ(reports_[index].pass, pipeline()[index].name);
  EXPECT_EQ(reports_[0].nodes_before, 4u);
  EXPECT_EQ(reports_[0].nodes_after, 3u);
}

TEST_F(PipelineTest, StopsAfterAPass) {
  run({.disabled = {}, .stop_after = "fold_constants", .on_graph = {}});
  ASSERT_EQ(reports_.size(), 3u);
  EXPECT_EQ(reports_.back().pass, "fold_constants");
}

TEST_F(PipelineTest, StartsAfterAPass) {
  PipelineOptions options;
  options.start_after = "fold_constants";
  options.stop_after = "join_pads";
  run(options);
  ASSERT_EQ(reports_.size(), 3u);
  EXPECT_EQ(reports_[0].pass, "eliminate_common_subexpressions");
  EXPECT_EQ(reports_[1].pass, "fold_tensors");
  EXPECT_EQ(reports_[2].pass, "join_pads");
}

TEST_F(PipelineTest, ShowsTheGraphAfterEachPass) {
  std::vector<std::string> seen;
  run({.disabled = {},
       .stop_after = "eliminate_common_subexpressions",
       .on_graph = [&](const std::string& pass, const Graph& after) {
         seen.push_back(pass + " " + std::to_string(after.nodes().size()));
       }});
  EXPECT_THAT(seen, ElementsAre("eliminate_dead_code 3", "form_integer_products 3", "fold_constants 3",
                                "eliminate_common_subexpressions 2"));
}

TEST_F(PipelineTest, LeavesOutWhatIsDisabled) {
  const Graph result =
      run({.disabled = {"eliminate_common_subexpressions", "fuse_elementwise"}, .stop_after = {}, .on_graph = {}});
  EXPECT_EQ(result.nodes().size(), 3u) << print_graph(result);
  EXPECT_EQ(reports_.size(), pipeline().size() - 2);
}

TEST_F(PipelineTest, APassIsKnownByItsOldNameToo) {
  run({.disabled = {"filter_by_tiles", "overlap_all_gathers"}, .stop_after = {}, .on_graph = {}});
  EXPECT_EQ(reports_.size(), pipeline().size() - 2);
  for (const PassReport& report : reports_) {
    EXPECT_NE(report.pass, "mark_winograd");
    EXPECT_NE(report.pass, "overlap_collectives");
  }
}

TEST_F(PipelineTest, PlansTheRestOfTheTableForAPassThatWantsAForecast) {
  const Graph graph = parse_graph(R"(graph "g" {
    batch %x "x" : f32[2,32,6,6]
    batch %w "w" : f32[32,32,3,3]
    %y = conv2d(%x, %w) {padding=[1,1]} : f32[2,32,6,6]
    %z = relu(%y) : f32[2,32,6,6]
    output "z" %z
  })",
                                  registry_);
  std::vector<int64_t> planned;  // what is granted in the graphs that are planned
  PassContext context{backend_};
  context.plan_memory = [&](const Graph& asked) {
    for (const Node& node : asked.nodes())
      if (node.op->name == "conv2d") planned.push_back(node.attributes.integer("winograd"));
    return PlannedMemory{};
  };
  run_pipeline(graph, context, {});
  EXPECT_THAT(planned, ElementsAre(kMostElements));
}

TEST_F(PipelineTest, KnowsWhichPassesAreLeftOutByTheirFunctions) {
  PipelineOptions options;
  options.disabled = {"filter_by_tiles"};
  EXPECT_TRUE(leaves_out(options, mark_winograd));
  EXPECT_FALSE(leaves_out(options, offload));
}

TEST_F(PipelineTest, AnUnknownPassIsAnErrorWithTheNearestName) {
  for (const PipelineOptions& options :
       {PipelineOptions{{"fuse_batchnorm"}, "", {}}, PipelineOptions{{}, "fuse_batchnorm", {}},
        PipelineOptions{{}, {}, {}, "fuse_batchnorm"}})
    try {
      run(options);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), HasSubstr("there is no pass 'fuse_batchnorm'; did you mean 'fuse_batch_norm'?"));
    }
}

}  // namespace
}  // namespace weft::passes
