// The step of ranks that are not here, which `weft plan` and the search foretell, is that of ranks that are.
#include "weft/program/rank_runtime.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "weft/comm/local/local_group.h"
#include "weft/graph/text.h"
#include "weft/library/library.h"
#include "weft/program/planned_step.h"
#include "weft/step/rank_mesh.h"

namespace weft::program {
namespace {

constexpr int kRanks = 2;

struct Strategy {
  const char* name;
  int64_t zero = 0, tensor = 1, pipeline = 1;
};

class DescribedRanks : public testing::TestWithParam<Strategy> {
 protected:
  StepChoice choice() const {
    spec::RunSpec spec;
    spec.model.name = "resnet20";
    spec.batch = 8;
    spec.threads = 1;
    spec.shard.zero = GetParam().zero;
    spec.mesh.tensor = GetParam().tensor;
    spec.mesh.pipeline = GetParam().pipeline;
    spec::resolve(spec);
    models::ModelInput input = models::find_model(library_.models, "resnet20").default_input;
    input.batch = spec.batch;
    return {.spec = spec, .input = input};
  }
  /// The graph of a batch with its plan's bytes.
  static std::string text_of(PlannedStep& step) {
    return fmt::format("{}\n{} bytes", print_graph(step.compiled().graph), step.total_bytes());
  }

  const Library library_ = standard_library();
};

TEST_P(DescribedRanks, PlanTheStepThatRanksRun) {
  std::map<int, std::string> texts;
  std::mutex mutex;
  passes::Ranks costs;
  comm::run_ranks(std::vector<std::string>(kRanks, "host"), [&](comm::Communicator& ranks) {
    const PlannedOnRanks planned = plan_on_ranks(library_, &ranks, {}, [&] { return choice(); });
    const std::lock_guard lock(mutex);
    texts[ranks.rank()] = text_of(*planned.step);
    costs = planned.runtime->costs();
  });
  const Mesh mesh = step::mesh_of(choice().spec, kRanks);
  const CostProfile profile = agreed_profile(nullptr, library_, choice().spec.cost_profile, 1);
  for (const auto& [rank, text] : texts) {
    const RankRuntime runtime(costs, mesh, rank);
    PlannedStep described(library_, choice(), runtime, profile, Tuning{}, Note{});
    EXPECT_EQ(text_of(described), text) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, DescribedRanks,
                         testing::Values(Strategy{"data"}, Strategy{.name = "zero_1", .zero = 1},
                                         Strategy{.name = "zero_3", .zero = 3}, Strategy{.name = "tensor", .tensor = 2},
                                         Strategy{.name = "pipeline", .pipeline = 2}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weft::program
