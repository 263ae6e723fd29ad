// Runs whose activations lie in a file because the memory limit leaves no place for them.
#include <cerrno>

#include "tests/cli/run_files.h"

namespace weft::cli_tests {
namespace {

class OffloadRun : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    fs::create_directory(path("disk"));
    std::string text;
    for (int line = 0; line < 600; ++line) text += "the " + std::to_string(line * line % 97) + " of them went on\n";
    write_all(path("t.txt"), text);
    ASSERT_EQ(weft(run("free", {})).code, 0);
    const int64_t planned = json_of("free/summary.json")["planned_total_bytes"];
    const int64_t arena = json_of("free/plan.json")["arena_bytes"];
    limit_ = std::to_string(planned - arena * 58 / 100);
  }

  /// A small transformer, most of whose activations recomputation cannot do without.
  static std::vector<std::string> run(const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"train", "--model", "transformer_lm", "--data", "text:t.txt?length=64"};
    arguments.insert(arguments.end(), {"--run", name, "--batch", "16", "--threads", "1", "--quiet"});
    if (std::find(more.begin(), more.end(), "--epochs") == more.end())
      arguments.insert(arguments.end(), {"--epochs", "1"});
    for (const char* option : {"model.layers=1", "model.width=64", "model.heads=2"})
      arguments.insert(arguments.end(), {"--set", option});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::vector<std::string> limited(const std::string& name, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--memory-limit", limit_, "--offload", "disk"});
    return run(name, more);
  }
  /// With the disk failing with `code` from change `at` of its files on.
  Outcome run_on_failing_disk(const std::string& name, int code, int at) const {
    return Process(limited(name), directory_, -1,
                   {"LD_PRELOAD=" WEFT_FAULT_INJECTION, "WEFT_FAULT_BELOW=" + path("disk").string(),
                    "WEFT_FAULT=refuse:" + std::to_string(code) + ":" + std::to_string(at),
                    "ASAN_OPTIONS=verify_asan_link_order=0"})
        .wait();
  }
  std::string limit_;
};

TEST_F(OffloadRun, MeetsALimitThatRecomputationCannotAndChangesNoWeight) {
  const Outcome without = weft(run("without", {"--memory-limit", limit_}));
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.err.find("or let activations lie in a file: offload = DIR"), std::string::npos) << without.err;

  const Outcome outcome = weft(limited("limited"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("are written to a file in 'disk' in each step and read back"), std::string::npos)
      << outcome.err;
  EXPECT_LE(json_of("limited/summary.json")["planned_total_bytes"].get<int64_t>(), std::stoll(limit_));
  EXPECT_GT(json_of("limited/plan.json")["file_bytes"].get<int64_t>(), 0);
  EXPECT_TRUE(last_state("free") == last_state("limited")) << "the weights differ";
  EXPECT_TRUE(fs::is_empty(path("disk")));

  const Outcome explained = weft({"explain", "limited", "--steps", "2"});
  ASSERT_EQ(explained.code, 0) << explained.err;
  EXPECT_NE(explained.out.find("activations lie in a file between their uses"), std::string::npos) << explained.out;
  const Outcome elsewhere = weft({"explain", "limited", "--memory", "--json"});
  EXPECT_GT(nlohmann::json::parse(elsewhere.out)["offloaded"]["bytes"].get<int64_t>(), 0);
}

TEST_F(OffloadRun, ABatchOnTheBenchAndTheGraphShowIt) {
  const auto plan = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"bench", "transformer_lm", "--input", "64", "--batch",
                                          "16",    "--threads",      "1"};
    for (const char* option : {"model.layers=1", "model.width=64", "model.heads=2"})
      arguments.insert(arguments.end(), {"--set", option});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return weft(arguments);
  };
  const auto free = nlohmann::json::parse(plan({"--plan-only", "--json"}).out);
  const int64_t limit = free["planned_total_bytes"].get<int64_t>() - free["planned_peak_bytes"].get<int64_t>() * 6 / 10;
  const Outcome outcome =
      plan({"--memory-limit", std::to_string(limit), "--offload", "disk", "--seconds", "0", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto limited = nlohmann::json::parse(outcome.out);
  EXPECT_LE(limited["planned_total_bytes"].get<int64_t>(), limit);
  EXPECT_GT(limited["offloaded_bytes"].get<int64_t>(), 0);
  const std::string graph = weft({"graph",          "transformer_lm",
                                  "--input",        "64",
                                  "--batch",        "16",
                                  "--threads",      "1",
                                  "--set",          "model.layers=1",
                                  "--set",          "model.width=64",
                                  "--set",          "model.heads=2",
                                  "--after",        "offload",
                                  "--memory-limit", std::to_string(limit),
                                  "--offload",      "disk"})
                                .out;
  EXPECT_NE(graph.find(" = store("), std::string::npos);
  EXPECT_NE(graph.find(" = load("), std::string::npos);
}

TEST_F(OffloadRun, ADirectoryThatIsAbsentIsNamedBeforeAnythingIsDone) {
  fs::remove(path("disk"));
  expect_error(weft(limited("r")), 1,
               "offload = 'disk': cannot make a file there: No such file or directory; give a directory on a disk with "
               "free space");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(OffloadRun, ADiskThatIsFullIsNamedBeforeTheFirstStep) {
  // The first change makes the file, the second takes its space.
  expect_error(run_on_failing_disk("r", ENOSPC, 2), 1, "that the step keeps there: No space left on device");
  EXPECT_FALSE(fs::exists(path("r")));
  EXPECT_TRUE(fs::is_empty(path("disk")));
}

TEST_F(OffloadRun, AFileSizeLimitIsNamed) {
  const Outcome outcome = weft(limited("r"), 64 * 1024);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("File too large"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("ulimit -f"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(OffloadRun, ADiskThatBreaksInAStepEndsTheRunWithItsName) {
  for (const int at : {3, 40}) {
    const std::string name = "broken" + std::to_string(at);
    const Outcome outcome = run_on_failing_disk(name, EIO, at);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.err.find("offload = 'disk': "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("the file failed: Input/output error; check the disk"), std::string::npos)
        << outcome.err;
    EXPECT_TRUE(fs::is_empty(path("disk")));
    EXPECT_FALSE(fs::exists(path(name + "/summary.json")));
    // Once the disk is well again the run goes on.
    const Outcome resumed = weft({"train", "--resume", name, "--quiet"});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_TRUE(last_state(name) == last_state("free")) << "the weights differ";
  }
}

TEST_F(OffloadRun, ARunThatIsKilledLeavesNoFileAndGoesOnWithADirectoryElsewhere) {
  {
    Process process(limited("r", {"--epochs", "100000", "--set", "checkpoint.every_steps=1"}), directory_);
    const auto has_checkpoint = [&] { return fs::exists(path("r/checkpoints")) && !last_checkpoint("r").empty(); };
    for (int wait = 0; wait < 3000 && !has_checkpoint(); ++wait) {
      ASSERT_FALSE(process.has_ended());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().code, 128 + SIGKILL);
  }
  EXPECT_TRUE(fs::is_empty(path("disk")));
  fs::rename(path("disk"), path("elsewhere"));
  std::string spec = read_all(path("r/spec.toml"));
  const std::string before = "offload = \"" + path("disk").string();
  ASSERT_NE(spec.find(before), std::string::npos) << spec;
  spec.replace(spec.find(before), before.size(), "offload = \"" + path("elsewhere").string());
  write_all(path("r/spec.toml"), spec);
  const std::string killed_at = last_checkpoint("r");
  Process resumed({"train", "--resume", "r", "--quiet"}, directory_);
  while (!resumed.has_ended() && last_checkpoint("r") == killed_at)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(resumed.has_ended()) << resumed.wait().err;
  resumed.send(SIGINT);
  const Outcome stopped = resumed.wait();
  EXPECT_NE(stopped.err.find("interrupted after step"), std::string::npos) << stopped.err;
}

TEST_F(OffloadRun, ARateThatIsNoneAndAFileWithoutALimitAreNamed) {
  expect_error(weft(limited("r", {"--set", "offload_rate=fast"})), 2,
               "offload_rate = 'fast' is no amount of bytes (per second); write 1GB or 200MB");
  const Outcome outcome = weft(run("r", {"--offload", "disk"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("offload = 'disk' without memory_limit has no effect"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace weft::cli_tests
