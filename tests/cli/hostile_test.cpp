// Input that lies, hangs or has no end: an error that names it, and nothing worse.
#include <sys/stat.h>

#include "tests/cli/run_files.h"

namespace weft::cli_tests {
namespace {

class Hostile : public RunTest {
 protected:
  std::string repeated(const std::string& part, int times) const {
    std::string text;
    for (int count = 0; count < times; ++count) text += part;
    return text;
  }
  /// Another value of the same length.
  void change(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = read_all(path(file));
    const size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << file;
    write_all(path(file), text.replace(at, from.size(), to));
  }
};

TEST_F(Hostile, RecipesThatNestWithoutEndAreRefused) {
  write_all(path("deep.toml"), "epochs = " + repeated("[", 25000));
  expect_error(weft({"train", "deep.toml"}), 1, "deep.toml:1: nests more than 64 levels deep");
  write_all(path("dots.toml"), repeated("a.", 25000) + "b = 1\n");
  expect_error(weft({"train", "dots.toml"}), 1, "dots.toml:1: nests more than 64 levels deep");
}

TEST_F(Hostile, APipeOrADeviceIsNoRecipe) {
  ASSERT_EQ(mkfifo(path("pipe.toml").c_str(), 0600), 0);
  expect_error(weft({"train", "pipe.toml"}), 1, "cannot read 'pipe.toml': it is a pipe; give a file");
  expect_error(weft({"train", "--model", "mlp", "--data", "csv:/dev/zero"}), 1,
               "cannot read '/dev/zero': it is a device");
}

TEST_F(Hostile, AClosedConnectionLeavesACheckpoint) {
  Process process(tiny_run("r", {"--epochs", "100000"}), directory_);
  while (!fs::exists(path("r/checkpoints")) && !process.has_ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  process.send(SIGHUP);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("train --resume r"), std::string::npos) << outcome.err;
}

TEST_F(Hostile, NextStepsAreWordsOfTheShell) {
  const Outcome outcome = weft(tiny_run("a run; it's mine"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(R"(eval 'a run; it'\''s mine')"), std::string::npos) << outcome.out;
}

TEST_F(Hostile, ControlCharactersOfNamesDoNotReachTheTerminal) {
  expect_error(weft({"train", "\x1b[31mred.toml"}), 1, "\\x1b[31mred.toml");
}

TEST_F(Hostile, AClusterFileOfNonsenseIsRefusedOnOneProcessToo) {
  const Outcome outcome = weft(tiny_run("r", {"--set", "cluster=nonsense"}));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("nonsense"), std::string::npos) << outcome.err;
}

TEST_F(Hostile, ACheckpointWithAnotherPositionIsDamaged) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "2"})).code, 0);
  fs::remove(path("r/summary.json"));
  const std::string manifest = "r/checkpoints/" + last_checkpoint("r") + "/manifest.json";
  change(manifest, "\"epoch\": 2", "\"epoch\": 1");
  const Outcome outcome = weft({"train", "--resume", "r", "--quiet"});
  EXPECT_NE(outcome.err.find("is damaged: its content is not what weft wrote there"), std::string::npos) << outcome.err;
}

TEST_F(Hostile, ACheckpointOfAnOlderWeftIsReadWithALine) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "2"})).code, 0);
  const fs::path manifest = path("r/checkpoints") / last_checkpoint("r") / "manifest.json";
  nlohmann::json root = nlohmann::json::parse(read_all(manifest));
  root.erase("checksum");
  write_all(manifest, root.dump());
  const Outcome outcome = weft({"train", "--resume", "r", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("its manifest has no checksum"), std::string::npos) << outcome.err;
  root["position"]["epoch"] = -1;
  write_all(manifest, root.dump());
  EXPECT_NE(weft({"train", "--resume", "r", "--quiet"}).err.find("its position.epoch cannot be"), std::string::npos);
}

TEST_F(Hostile, WhatDescribesTheDataIsSealed) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  change("r/data.json", "\"samples\": 320", "\"samples\": 321");
  expect_error(weft({"eval", "r"}), 1, "data.json' is damaged: its content is not what weft wrote there");
}

TEST_F(Hostile, APlanWhoseLimitIsNoNumberIsDamaged) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "1"})).code, 0);
  nlohmann::json plan = nlohmann::json::parse(read_all(path("r/plan.json")));
  plan.erase("checksum");
  plan["arena_limit_bytes"] = "all";
  write_all(path("r/plan.json"), plan.dump());
  const Outcome outcome = weft({"explain", "r", "--memory"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("plan.json' is damaged: it does not say what the arena was given; put the original back"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Hostile, ALinkThatLeadsBackIsNoClass) {
  for (const char* name : {"cat", "dog"}) {
    fs::create_directories(path("pictures") / name);
    for (int count = 0; count < 4; ++count)
      write_all(path("pictures") / name / (std::to_string(count) + ".pgm"), "P5 2 2 255\n" + std::string(4, 'a'));
  }
  fs::create_directory_symlink(path("pictures"), path("pictures/again"));
  const Outcome outcome = weft({"data", "images:pictures?size=2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("again"), std::string::npos) << outcome.out;
  fs::create_directory_symlink(path("pictures/cat"), path("pictures/kitten"));
  expect_error(weft({"data", "images:pictures?size=2"}), 1, "are one folder; remove the link");
}

TEST_F(Hostile, AMessageQuotesNoMegabytes) {
  write_all(path("t.csv"), "a,b\n1,2\n" + std::string(10'000'000, 'x') + ",1,2,3\n");
  EXPECT_LT(weft({"data", "csv:t.csv"}).err.size(), 5000u);
}

}  // namespace
}  // namespace weft::cli_tests
