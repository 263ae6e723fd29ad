// Kernels chosen by measuring, as a user would ask for it; a cache file that is damaged or cannot be written stops
// nobody.
#include <nlohmann/json.hpp>

#include "tests/cli/run_files.h"

namespace weft::cli_tests {
namespace {

class AutotuneRun : public RunTest {
 protected:
  Outcome tuned(const std::vector<std::string>& arguments, const std::string& cache = "cache") {
    return Process(arguments, directory_, -1, {"WEFT_CACHE_DIR=" + cache}).wait();
  }
  fs::path cache_file() const {
    const fs::directory_iterator first(path("cache"));
    return first == fs::directory_iterator() ? fs::path() : first->path();
  }
  static bool says(const Outcome& outcome, const std::string& part) {
    return outcome.err.find(part) != std::string::npos;
  }
};

TEST_F(AutotuneRun, ResumesWithTheKernelsThatItBeganWith) {
  const Outcome trained = tuned(tiny_run("whole", {"--autotune", "measure"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(says(trained, "weft: measured the kernels of ")) << trained.err;
  const auto plan = json_of("whole/plan.json");
  ASSERT_FALSE(plan["measured_kernels"].empty());
  fs::copy(path("whole"), path("cut"), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  fs::remove_all(path("cut") / "checkpoints" / last_checkpoint("cut"));
  fs::remove(path("cut/summary.json"));
  fs::remove_all(path("cache"));  // what was measured since would not matter either
  const Outcome resumed = tuned({"train", "--resume", "cut", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_FALSE(says(resumed, "measur")) << resumed.err;
  EXPECT_EQ(last_state("cut"), last_state("whole"));
  EXPECT_EQ(json_of("cut/plan.json"), plan);
}

TEST_F(AutotuneRun, ExplainSaysWhatWasMeasured) {
  ASSERT_EQ(tuned(tiny_run("r", {"--autotune", "measure", "--epochs", "1"})).code, 0);
  const Outcome explained = tuned({"explain", "r", "--steps", "1", "--json"});
  ASSERT_EQ(explained.code, 0) << explained.err;
  int measured = 0;
  const auto root = nlohmann::json::parse(explained.out);
  for (const auto& node : root["nodes"]) {
    if (!node.contains("measured")) continue;
    ++measured;
    EXPECT_EQ(node["measured"][0]["kernel"], node["kernel"]);
    EXPECT_GE(node["measured"].size(), 2u);
  }
  EXPECT_GT(measured, 0);
  EXPECT_NE(tuned({"explain", "r", "--steps", "1"}).out.find(" times as fast as "), std::string::npos);
  const Outcome without = tuned({"explain", "r", "--steps", "1", "--autotune", "off"});
  EXPECT_EQ(without.out.find(" times as fast as "), std::string::npos) << without.out;
}

TEST_F(AutotuneRun, WhatIsKnownIsNotMeasuredAgain) {
  const std::vector<std::string> bench = {"bench", "mlp", "--seconds", "0", "--threads", "1", "--autotune", "measure"};
  const Outcome first = tuned(bench);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(says(first, "measured the kernels of ")) << first.err;
  const Outcome again = tuned(bench);
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.err, "");
}

TEST_F(AutotuneRun, ADamagedCacheIsNamedAndDoneWithout) {
  ASSERT_EQ(tuned(tiny_run("a", {"--autotune", "measure", "--epochs", "1"})).code, 0);
  const fs::path file = cache_file();
  write_all(file, read_all(file).substr(0, 300));
  const Outcome outcome = tuned(tiny_run("b", {"--autotune", "cached", "--epochs", "1"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_TRUE(says(outcome, "are not used: it is damaged")) << outcome.err;
  EXPECT_TRUE(json_of("b/plan.json")["measured_kernels"].empty());
}

TEST_F(AutotuneRun, WhereNothingCanBeKeptTheRunGoesOn) {
  const Outcome outcome = tuned(tiny_run("r", {"--autotune", "measure", "--epochs", "1"}), "/dev/null/cache");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(says(outcome, "it is not kept: ")) << outcome.err;
}

TEST_F(AutotuneRun, AnotherWordIsAMistake) {
  expect_error(weft(tiny_run("r", {"--autotune", "yes"})), 2, "choose one of: off, cached, measure");
}

}  // namespace
}  // namespace weft::cli_tests
