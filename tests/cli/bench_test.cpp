// weft bench: what a step costs, as a user asks for it.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

class Bench : public ProgramTest {
 protected:
  nlohmann::json bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    arguments.insert(arguments.end(), {"--seconds", "0", "--threads", "1", "--json"});
    const Outcome outcome = weft(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
};

TEST_F(Bench, PlanOnlyCountsAndRunsNothing) {
  const auto plan = bench({"lenet5", "--batch", "4", "--plan-only"}), run = bench({"lenet5", "--batch", "4"});
  EXPECT_FALSE(plan.contains("median_step_seconds"));
  EXPECT_GT(run["rss_growth_bytes"], run["planned_total_bytes"]) << "the libraries' pages come on top";
  EXPECT_EQ(plan["work"], run["work"]);
  int64_t nodes = 0;
  for (const auto& kernel : plan["work"]["kernels"]) nodes += kernel["nodes"].get<int64_t>();
  EXPECT_EQ(nodes, plan["work"]["nodes"].get<int64_t>());
  const Outcome text = weft({"bench", "lenet5", "--plan-only"});
  EXPECT_NE(text.out.find("nodes  op"), std::string::npos) << text.out;
}

TEST_F(Bench, PlanOnlyNeedsNoMemoryForTheStep) {
  const auto plan = bench({"vgg16", "--input", "3,224,224", "--batch", "4096", "--plan-only"});
  EXPECT_GT(plan["planned_total_bytes"].get<double>(), 2e11);
}

TEST_F(Bench, ARecipeBringsItsModelItsOptimiserAndItsBatch) {
  const auto built_in = bench({"optdigits", "--input", "64", "--plan-only"});
  EXPECT_EQ(built_in["model"], "mlp");
  EXPECT_EQ(built_in["batch"], 128);
  EXPECT_EQ(bench({"optdigits", "--input", "64", "--batch", "32", "--plan-only"})["batch"], 32);
  write_all(path("own.toml"), "batch = 24\n[model]\nname = \"mlp\"\nhidden = \"16\"\n[optimizer]\nname = \"lamb\"\n");
  EXPECT_EQ(bench({"own.toml", "--plan-only"})["batch"], 24);
  expect_error(weft({"bench", "absent.toml"}), 1, "absent.toml");
}

}  // namespace
}  // namespace weft::cli_tests
