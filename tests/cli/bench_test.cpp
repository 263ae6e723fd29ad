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

TEST_F(Bench, ARecipesOwnDataSayWhatItsModelReads) {
  write_all(path("table.csv"), "a,b,c,label\n1,2,3,x\n4,5,6,y\n7,8,1,x\n2,2,2,y\n1,5,3,z\n4,3,6,z\n");
  const std::string table = path("table.csv").string();
  write_all(path("own.toml"),
            "data = \"csv:" + table + "?label=label&test=" + table + "\"\nbatch = 4\n[model]\nname = \"mlp\"\n");
  const auto plan = bench({"own.toml", "--plan-only"});
  EXPECT_EQ(plan["input"], nlohmann::json({3}));
  EXPECT_EQ(plan["classes"], 3);
  EXPECT_NE(plan["input_from"].get<std::string>().find("table.csv"), std::string::npos);
  const auto told = bench({"own.toml", "--plan-only", "--input", "9", "--classes", "2"});
  EXPECT_EQ(told["input"], nlohmann::json({9}));
  EXPECT_EQ(told["input_from"], "--input");
  EXPECT_NE(weft({"bench", "own.toml", "--seconds", "0"}).out.find("input (3) and 3 classes: from the data 'csv:"),
            std::string::npos);
  EXPECT_EQ(bench({"mlp", "--plan-only"})["input_from"], "the model's default");
  const Outcome graph = weft({"graph", "own.toml", "--inference"});
  EXPECT_EQ(graph.code, 0) << graph.err;
  EXPECT_NE(graph.out.find("[4,3]"), std::string::npos) << graph.out;
}

TEST_F(Bench, DataThatAreNotThereAreSaidAndTheirNameIsRead) {
  write_all(path("own.toml"), "data = \"images:absent?size=48\"\n[model]\nname = \"resnet18\"\n");
  const Outcome plan = weft({"bench", "own.toml", "--plan-only", "--json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_EQ(nlohmann::json::parse(plan.out)["input"], nlohmann::json({3, 48, 48}));
  EXPECT_NE(plan.err.find("the recipe's data cannot be read here ("), std::string::npos) << plan.err;
  EXPECT_NE(plan.err.find("assumed an input of (3,48,48)"), std::string::npos) << plan.err;
  EXPECT_NE(plan.err.find("give --input and --classes, or put the data there"), std::string::npos) << plan.err;
}

}  // namespace
}  // namespace weft::cli_tests
