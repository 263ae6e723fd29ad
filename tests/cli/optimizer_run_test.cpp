// Every optimiser and option trains on a small IDX data set, as a user would ask for it, and mistakes are said.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

class OptimizerRun : public ProgramTest {
 protected:
  nlohmann::json summary(const std::string& run) const {
    return nlohmann::json::parse(read_all(path(run) / "summary.json"));
  }
};

TEST_F(OptimizerRun, EachLearnsInAnEpoch) {
  for (const std::string name : {"sgd", "adam", "adamw", "lamb", "lars", "muon", "rmsprop"}) {
    const std::string rate = name == "lars" ? "10" : name == "sgd" ? "0.05" : "0.01";
    const Outcome outcome = weft(tiny_run(name, {"--epochs", "1", "--set", "batch=8", "--set", "optimizer.name=" + name,
                                                 "--set", "optimizer.learning_rate=" + rate}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_GT(summary(name)["test_accuracy"], 0.8) << name << ": bright quarters are easy to tell apart";
  }
}

TEST_F(OptimizerRun, OptionsWorkTogether) {
  const std::vector<std::string> options = {"--set", "accumulate=2",
                                            "--set", "clip.norm=1",
                                            "--set", "ema.decay=0.9",
                                            "--set", "lookahead.steps=5",
                                            "--set", "schedule.name=linear_cosine",
                                            "--set", "optimizer.groups.biases.match=*.bias",
                                            "--set", "optimizer.groups.biases.learning_rate_factor=2"};
  std::vector<std::string> more = {"--epochs", "8", "--set", "batch=8"};
  more.insert(more.end(), options.begin(), options.end());
  const Outcome outcome = weft(tiny_run("r", more));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(summary("r")["steps"], 8 * 20);
  EXPECT_NE(read_all(path("r/metrics.jsonl")).find("\"gradient_norm\":"), std::string::npos);
  const Outcome evaluated = weft({"eval", "r", "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_DOUBLE_EQ(nlohmann::json::parse(evaluated.out)["loss"], summary("r")["test_loss"]) << "of the averages";
  for (const std::string command : {"explain", "graph"}) EXPECT_EQ(weft({command, "r"}).code, 0) << command;
}

TEST_F(OptimizerRun, GroupWithoutMembersLeavesNothingBehind) {
  expect_error(weft(tiny_run("r", {"--set", "optimizer.groups.head.match=head.*"})), 2,
               "optimizer.groups.head.match = 'head.*' matches no parameter");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(OptimizerRun, MoreBatchesThanDataAreRefused) {
  expect_error(weft(tiny_run("r", {"--set", "accumulate=11"})), 2,
               "accumulate = 11 batches of 32 are more than the training data");
}

TEST_F(OptimizerRun, PlateauWithoutTestDataIsRefused) {
  expect_error(weft({"train", "--model", "mlp", "--data", "idx:train-images,train-labels", "--run", "r", "--set",
                     "schedule.name=plateau", "--set", "schedule.monitor=test_loss"}),
               2, "set schedule.monitor=train_loss");
}

}  // namespace
}  // namespace weft::cli_tests
