// Several processes under mpirun train as one.
#include <cmath>
#include <functional>
#include <map>

#include "tests/cli/run_files.h"
#include "weft/launch/process_table.h"

namespace weft::cli_tests {
namespace {

class Ranks : public RunTest {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no mpirun";
    RunTest::SetUp();
  }
  void TearDown() override {
    if (!directory_.empty()) RunTest::TearDown();
  }

  static std::vector<std::string> mpirun(int ranks) {
    return {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun", "--oversubscribe", "-n",
            std::to_string(ranks)};
  }
  static std::vector<std::string> lenet(const std::string& run, const std::string& epochs) {
    return {"train",   "--model", "lenet5",   "--data", data(),      "--run", run,
            "--batch", "64",      "--epochs", epochs,   "--threads", "1",     "--quiet"};
  }
  Outcome weft_on(int ranks, const std::vector<std::string>& arguments) {
    return Process(arguments, directory_, -1, mpirun(ranks)).wait();
  }
  /// Those that train in this test's directory.
  std::vector<pid_t> training_processes() const {
    std::vector<pid_t> found;
    std::error_code code;
    for (const auto& entry : fs::directory_iterator("/proc", code)) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (fs::read_symlink(entry.path() / "cwd", code) != fs::canonical(directory_) || code) continue;
      const std::string words = read_all(entry.path() / "cmdline");
      if (words.starts_with(std::string(WEFT_PROGRAM) + '\0' + "train")) found.push_back(std::stoi(name));
    }
    return found;
  }
  /// By rank, of those processes.
  std::map<int, pid_t> ranks_training() const {
    const std::string variable = "OMPI_COMM_WORLD_RANK=";
    std::map<int, pid_t> found;
    for (const pid_t process : training_processes()) {
      std::istringstream variables(read_all("/proc/" + std::to_string(process) + "/environ"));
      for (std::string text; std::getline(variables, text, '\0');)
        if (text.starts_with(variable)) found[std::stoi(text.substr(variable.size()))] = process;
    }
    return found;
  }
  /// The rank of that number among those that are looking for each other in `folder`: the parent of its watcher.
  static pid_t wait_for_starting_rank(const fs::path& folder, int rank) {
    for (int tries = 0; tries < 10'000; ++tries) {
      for (const launch::RunningProcess& one : launch::running_processes()) {
        std::error_code code;
        const fs::path process = fs::path("/proc") / std::to_string(one.process);
        if (fs::read_symlink(process / "cwd", code) == fs::canonical(folder) && !code &&
            read_all(process / "cmdline").starts_with("weft: watches the ranks start") &&
            launch::variable_of(one.process, "OMPI_COMM_WORLD_RANK") == std::to_string(rank))
          return one.parent;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return -1;
  }
  /// A second rank, by a script that does something first.
  std::vector<std::string> with_second(const std::string& folder, const std::string& script) const {
    fs::create_directory(path(folder));
    write_all(path(folder) / "second", "#!/bin/bash\n" + script + "\nexec \"$@\"\n");
    fs::permissions(path(folder) / "second", fs::perms::owner_all);
    const std::vector<std::string> train = tiny_run("r");
    std::vector<std::string> words = train;
    words.insert(words.end(), {":", "-n", "1", "./second", WEFT_PROGRAM});
    words.insert(words.end(), train.begin(), train.end());
    return words;
  }
  /// Trains on two ranks, of which the second one is stopped for three quarters of the time, a share that stays what it
  /// is however busy the machine is, until there is a record of that kind. Checks the first one.
  using Check = std::function<void(const nlohmann::json& record, const Outcome& outcome)>;
  void with_a_slow_rank(const std::vector<std::string>& more, const std::string& kind, const Check& check) {
    write_idx("train", 320, 16);
    write_idx("test", 72, 16);
    std::vector<std::string> train = lenet("r", "1000000");
    train.insert(train.end(), {"--set", "evaluation.every_epochs=0", "--set", "checkpoint.every_epochs=0"});
    train.insert(train.end(), more.begin(), more.end());
    Process process(train, directory_, -1, mpirun(2));
    const auto now = std::chrono::steady_clock::now;
    const auto begin = now();
    const auto metrics = [&] { return read_all(path("r") / "metrics.jsonl"); };
    while (!process.has_ended() && metrics().empty() && now() - begin < std::chrono::seconds(60))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::map<int, pid_t> ranks = ranks_training();
    ASSERT_EQ(ranks.size(), 2u) << read_all(path(".stderr"));
    const std::string wanted = "\"kind\":\"" + kind + "\"";
    bool is_there = false;
    while (!is_there && !process.has_ended() && now() - begin < std::chrono::seconds(120)) {
      for (int time = 0; time < 10; ++time) {
        kill(ranks.at(1), SIGSTOP);
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        kill(ranks.at(1), SIGCONT);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      is_there = metrics().find(wanted) != std::string::npos;
    }
    kill(ranks.at(0), SIGTERM);
    const Outcome outcome = process.wait();
    ASSERT_TRUE(is_there) << outcome.err;
    const std::string text = metrics();
    const size_t line = text.rfind('\n', text.find(wanted)) + 1;
    check(nlohmann::json::parse(text.substr(line, text.find('\n', line) - line)), outcome);
  }
  void expect_named_where_it_is_slow(const std::vector<std::string>& more) {
    with_a_slow_rank(more, "rank_pace", [](const nlohmann::json& record, const Outcome& outcome) {
      EXPECT_EQ(record["rank"], 1) << record;
      EXPECT_EQ(record["is_slow"], true) << record;
      EXPECT_GT(record["own_seconds"].get<double>(), 1.3 * record["others_seconds"].get<double>()) << record;
      EXPECT_EQ(count_of(outcome.err, "weft: rank 1 on host '"), 1) << outcome.err;
      EXPECT_EQ(count_of(outcome.err, " times as long per step as the others ("), 1) << outcome.err;
    });
  }
  static int count_of(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }
  std::vector<double> losses(const std::string& run) const {
    std::istringstream lines(read_all(path(run) / "metrics.jsonl"));
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record["kind"] == "step") found.push_back(record["loss"]);
    }
    return found;
  }
  void expect_same_losses(const std::string& run, const std::string& wanted) const {
    const std::vector<double> a = losses(run), b = losses(wanted);
    ASSERT_EQ(a.size(), b.size());
    for (size_t step = 0; step < a.size(); ++step) EXPECT_NEAR(a[step], b[step], 1e-5 * b[step] + 1e-7) << step;
  }
};

TEST_F(Ranks, TheLossCurveIsThatOfOneProcess) {
  write_idx("train", 320, 16);
  write_idx("test", 72, 16);
  ASSERT_EQ(weft(lenet("one", "10")).code, 0);
  for (const int ranks : {2, 4}) {
    const Outcome outcome = weft_on(ranks, lenet(std::to_string(ranks), "10"));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(count_of(outcome.out, "run directory: "), 1) << outcome.out;
    expect_same_losses(std::to_string(ranks), "one");
    const auto summary = json_of(std::to_string(ranks) + "/summary.json"), alone = json_of("one/summary.json");
    EXPECT_EQ(summary["ranks"], ranks);
    EXPECT_EQ(summary["steps"], 50);
    EXPECT_NEAR(summary["test_loss"].get<double>(), alone["test_loss"].get<double>(), 1e-4);
    EXPECT_EQ(summary["test_accuracy"], alone["test_accuracy"]);
  }
}

TEST_F(Ranks, OneThatIsStartedInAScriptHasTheCoresOfItsHost) {
  const auto threads = [&](const std::vector<std::string>& prefix) {
    const Outcome outcome = Process({"bench", "lenet5", "--seconds", "0.01", "--json"}, directory_, -1, prefix).wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("threads").get<int>();
  };
  write_all(path("script"), "#!/bin/bash\n\"$@\"\nexit $?\n");
  fs::permissions(path("script"), fs::perms::owner_all);
  const std::vector<std::string> bound = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun",
                                          "-n", "1"};
  std::vector<std::string> in_script = bound;
  in_script.push_back("./script");
  const int all = threads({});
  EXPECT_EQ(threads(bound), all);
  EXPECT_EQ(threads(in_script), all);
}

TEST_F(Ranks, AnInterruptedRunGoesOnWithAnotherNumberOfThem) {
  ASSERT_EQ(weft(tiny_run("whole", {"--epochs", "200", "--set", "checkpoint.every_epochs=10"})).code, 0);
  Process process(tiny_run("cut", {"--epochs", "200", "--set", "checkpoint.every_epochs=10"}), directory_, -1,
                  mpirun(2));
  while (!process.has_ended() && !fs::exists(path("cut/checkpoints/best")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::vector<pid_t> ranks = training_processes();
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks.back(), SIGTERM);  // which tells the other
  const Outcome outcome = process.wait();
  EXPECT_NE(outcome.code, 0);
  EXPECT_EQ(count_of(outcome.err, "weft: interrupted after step "), 1) << outcome.err;
  EXPECT_FALSE(fs::exists(path("cut/summary.json")));
  const Outcome resumed = weft({"train", "--resume", "cut", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_same_losses("cut", "whole");
}

// Also where each is a host of its own, and cut by a kill.
TEST_F(Ranks, WithVirtualRanksTheWeightsAreBitwiseTheSameOnAnyNumberOfThem) {
  const auto run = [&](const std::string& name) {
    return tiny_run(name, {"--virtual-ranks", "4", "--epochs", "3", "--set", "checkpoint.every_steps=2"});
  };
  const auto weights = [&](const std::string& name) {
    const auto step = json_of(name + "/summary.json")["steps"].get<int64_t>();
    const std::string digits = std::to_string(step);
    const fs::path last = path(name) / "checkpoints" / ("step-" + std::string(8 - digits.size(), '0') + digits);
    return read_all(last / "model.safetensors") + read_all(last / "optimizer.safetensors");
  };
  ASSERT_EQ(weft(run("one")).code, 0);
  const std::string wanted = weights("one");
  ASSERT_GT(wanted.size(), 1000u);
  for (const int ranks : {2, 4})
    for (const bool apart : {false, true}) {
      std::vector<std::string> launcher = mpirun(ranks);
      if (apart) launcher.insert(launcher.begin(), "WEFT_RANKS_PER_HOST=1");
      const std::string name = std::to_string(ranks) + (apart ? "apart" : "");
      const Outcome outcome = Process(run(name), directory_, -1, launcher).wait();
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_TRUE(weights(name) == wanted) << name;
    }
  // Killed on four, resumed on fewer.
  for (const int ranks : {1, 2}) {
    const std::string name = "killed" + std::to_string(ranks);
    std::vector<std::string> train = tiny_run(name, {"--virtual-ranks", "4", "--epochs", "300"});
    train.insert(train.end(), {"--set", "checkpoint.every_epochs=10", "--set", "schedule.name=constant"});
    std::vector<std::string> whole = train;
    *std::find(whole.begin(), whole.end(), name) = name + "whole";
    ASSERT_EQ(weft(whole).code, 0);
    Process process(train, directory_, -1, mpirun(4));
    while (!process.has_ended() && !fs::exists(path(name + "/checkpoints/best")))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::vector<pid_t> processes = training_processes();
    ASSERT_EQ(processes.size(), 4u);
    kill(processes.back(), SIGKILL);
    EXPECT_NE(process.wait().code, 0);
    const std::vector<std::string> resume = {"train", "--resume", name, "--quiet"};
    ASSERT_EQ((ranks == 1 ? weft(resume) : weft_on(ranks, resume)).code, 0);
    EXPECT_TRUE(weights(name) == weights(name + "whole")) << name;
  }
}

TEST_F(Ranks, WhereTheyShareStatesTheLossesAreTheSameAndEveryCommandReadsTheRun) {
  const auto run = [&](const std::string& name, const std::string& zero) {
    return tiny_run(name, {"--epochs", "2", "--zero", zero, "--set", "late_multiply=false"});
  };
  ASSERT_EQ(weft_on(2, run("plain", "0")).code, 0);
  for (const std::string zero : {"1", "2", "3"})
    for (const bool apart : {false, true}) {
      std::vector<std::string> launcher = mpirun(2);
      if (apart) launcher.insert(launcher.begin(), "WEFT_RANKS_PER_HOST=1");
      const std::string name = "zero" + zero + (apart ? "apart" : "");
      const Outcome outcome = Process(run(name, zero), directory_, -1, launcher).wait();
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      expect_same_losses(name, "plain");
      const Outcome exported = weft({"export", name, name + ".safetensors"});
      EXPECT_EQ(exported.code, 0) << exported.err;
      EXPECT_TRUE(read_all(path(name + ".safetensors")) == read_all(path("zero1.safetensors"))) << "one file, whole";
      EXPECT_EQ(weft({"eval", name}).code, 0);
      const Outcome more = weft({"train", "--resume", name, "--epochs", "3", "--quiet"});
      EXPECT_EQ(more.code, 0) << "on one process: " << more.err;
    }
  const Outcome alone = weft(run("alone", "1"));
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(count_of(alone.err, "shard.zero = 1 with one rank, which has nobody to share its states with"), 1)
      << alone.err;
}

TEST_F(Ranks, ADryRunOfSeveralRanksPointsToThePlanOnce) {
  const std::vector<std::string> words = tiny_run("r", {"--dry-run", "--set", "mesh.pipeline=2"});
  for (const Outcome& outcome : {weft(words), weft_on(2, words)}) {
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "--dry-run measures steps of one process, and these are steps of 2 ranks"), 1)
        << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "--ranks 2`"), 1) << outcome.err;
  }
}

TEST_F(Ranks, TheGraphOfARunIsThatOfItsRanks) {
  ASSERT_EQ(weft_on(2, tiny_run("r", {"--zero", "1"})).code, 0);
  const Outcome graph = weft({"graph", "r"});
  EXPECT_EQ(graph.code, 0) << graph.err;
  EXPECT_NE(graph.out.find("flat(data=2)"), std::string::npos);
  EXPECT_EQ(graph.err, "");
}

TEST_F(Ranks, OfAModelAloneTheGraphSaysHowManyRanksItAssumes) {
  const Outcome graph = weft({"graph", "mlp", "--batch", "8", "--set", "shard.zero=1"});
  EXPECT_EQ(graph.code, 0) << graph.err;
  EXPECT_EQ(count_of(graph.err, "assumed 2 ranks, of which 2 along mesh.data; --set mesh.data=N says another number"),
            1)
      << graph.err;
}

TEST_F(Ranks, ExplainNamesTheCommandOfTheRunsRanks) {
  const Outcome trained = weft_on(2, tiny_run("r"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("mpirun -n 2 " WEFT_PROGRAM " explain r"), std::string::npos) << trained.out;
  const Outcome alone = weft({"explain", "r", "--memory"});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_NE(alone.err.find("the run had 2 ranks; for that, start 2 ranks (`mpirun -n 2 weft explain r`)"),
            std::string::npos)
      << alone.err;
}

TEST_F(Ranks, WeightsThatSplitLayersLeaveWholeAreNamed) {
  std::string text;
  for (int at = 0; at < 3000; ++at) text += "abcdefg"[at * at % 7];
  for (const char c : {'a', 'b', 'c', 'd', 'e', 'f', 'g'}) text += c;  // 7 rows of the vocabulary
  write_all(path("t.txt"), text);
  const Outcome outcome = weft_on(2, {"train",
                                      "--model",
                                      "transformer_lm",
                                      "--data",
                                      "text:t.txt?length=16",
                                      "--set",
                                      "model.layers=1",
                                      "--set",
                                      "model.width=16",
                                      "--set",
                                      "model.heads=2",
                                      "--tensor",
                                      "2",
                                      "--batch",
                                      "8",
                                      "--max-steps",
                                      "1",
                                      "--run",
                                      "r",
                                      "--threads",
                                      "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "mesh.tensor = 2: every rank has all of "), 1) << outcome.err;
  EXPECT_NE(outcome.err.find("'head.weight' (7,16)"), std::string::npos) << outcome.err;
}

TEST_F(Ranks, RanksThatCannotShareTheVirtualRanksAreTold) {
  const Outcome outcome = weft_on(3, tiny_run("r", {"--virtual-ranks", "4"}));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "virtual_ranks = 4 cannot be divided among 3 ranks; start 2 of them"), 1)
      << outcome.err;
}

TEST_F(Ranks, AUsersErrorIsSaidOnce) {
  const Outcome outcome = weft_on(3, tiny_run("r"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "batch = 32 cannot be divided among 3 ranks; choose 30 or 33"), 1) << outcome.err;
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(Ranks, AUsersErrorIsSaidOnceByWhateverComputes) {
  std::vector<std::string> odd = tiny_run("r");
  *std::find(odd.begin(), odd.end(), "32") = "33";
  ASSERT_EQ(weft(odd).code, 0);
  const auto expect_once = [&](const std::vector<std::string>& arguments, int code, const std::string& part) {
    const Outcome outcome = weft_on(2, arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "weft: " + part), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  expect_once({"bench", "mlp", "--batch", "33"}, 2, "--batch 33 cannot be shared by 2 ranks alike; try --batch 34");
  expect_once({"bench", "nonesuch"}, 2, "there is no model 'nonesuch'");
  expect_once({"bench", "mlp", "--batch", "32", "--set", "cluster=nowhere.toml"}, 1, "cannot open 'nowhere.toml'");
  expect_once({"bench", "mlp", "--batch", "32", "--without", "nonesuch"}, 2, "there is no pass 'nonesuch'");
  expect_once({"explain", "nowhere"}, 2, "there is no run directory 'nowhere'");
  expect_once({"explain", "r"}, 2, "batch 33 cannot be shared by 2 ranks alike");
  expect_once({"explain", "r", "--batch", "32", "--memory-limit", "1KB"}, 2, "memory_limit = 1KB: ");
}

TEST_F(Ranks, KernelsAreMeasuredByTheFirstAlone) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"bench", "lenet5", "--batch", "32", "--seconds", "0"},
        std::vector<std::string>{"explain", "r", "--steps", "1"}}) {
    std::vector<std::string> launcher = mpirun(2), words = arguments;
    launcher.insert(launcher.begin(), "WEFT_CACHE_DIR=" + path("cache-" + arguments[0]).string());
    words.insert(words.end(), {"--autotune", "measure", "--threads", "1"});
    const Outcome outcome = Process(words, directory_, -1, launcher).wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "weft: measured the kernels of "), 1) << outcome.err;
    const auto files = fs::directory_iterator(path("cache-" + arguments[0]));
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  }
}

TEST_F(Ranks, WhatFailsOnOneOfThemNamesItAndEndsAll) {
  std::vector<std::string> arguments = tiny_run("r"), other = arguments;
  *std::find(other.begin(), other.end(), data()) = "idx:missing,train-labels";
  arguments.insert(arguments.end(), {":", "-n", "1", WEFT_PROGRAM});
  arguments.insert(arguments.end(), other.begin(), other.end());
  const Outcome outcome = weft_on(1, arguments);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: rank 1 on host '"), 1) << outcome.err;
  EXPECT_NE(outcome.err.find("missing"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("r")));
}

// Three jobs at once, as each takes its seconds: rank 1 is stopped before it runs weft, rank 0 is stopped while it
// waits for rank 1, rank 1 ends without a word.
TEST_F(Ranks, OneThatKeepsTheOthersFromStartingIsNamed) {
  Process before(with_second("before", "kill -STOP $$"), path("before"), -1, mpirun(1));
  Process within(with_second("within", "sleep 2"), path("within"), -1, mpirun(1));
  Process ended(with_second("ended", "exit 0"), path("ended"), -1, mpirun(1));
  const auto begin = std::chrono::steady_clock::now();
  const pid_t stopped = wait_for_starting_rank(path("within"), 0);
  ASSERT_GT(stopped, 0);
  kill(stopped, SIGSTOP);
  const auto expect_named = [](Process& job, int code, const std::string& who, const std::string& why,
                               const std::string& seconds = "6") {
    const Outcome outcome = job.wait();
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
    const size_t named = outcome.err.find("weft: the ranks have not found each other: " + who + " on host '");
    ASSERT_NE(named, std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("' has given no sign of life for " + seconds + " s: " + why, named), std::string::npos)
        << outcome.err;
  };
  expect_named(before, 128 + SIGKILL, "rank 1", "its process ");
  expect_named(within, 128 + SIGKILL, "rank 0", "its process " + std::to_string(stopped) + " is stopped");
  expect_named(ended, 75, "rank 1", "its process has ended", "10");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  for (const launch::RunningProcess& one : launch::running_processes()) {
    std::error_code code;
    const fs::path folder = fs::read_symlink(fs::path("/proc") / std::to_string(one.process) / "cwd", code);
    EXPECT_NE(folder.parent_path(), fs::canonical(directory_)) << one.process;
  }
}

TEST_F(Ranks, OneThatIsKilledBeforeTheyHaveFoundEachOtherIsNamedAtOnce) {
  Process job(with_second("killed", "sleep 5"), path("killed"), -1, mpirun(1));
  const pid_t killed = wait_for_starting_rank(path("killed"), 0);
  ASSERT_GT(killed, 0);
  kill(killed, SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 128 + SIGKILL) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
  EXPECT_NE(outcome.err.find("weft: the ranks have not found each other: rank 0 on host '"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("its process " + std::to_string(killed) + " has ended"), std::string::npos) << outcome.err;
}

TEST_F(Ranks, ALaunchGoesOnWithoutARankThatIsStoppedWhileTheyStart) {
  std::vector<std::string> arguments = {"launch", "-n", "2", "--restarts", "1", "--"};
  const std::vector<std::string> train = tiny_run("r");
  arguments.insert(arguments.end(), train.begin(), train.end());
  Process process(arguments, directory_);
  const pid_t stopped = wait_for_starting_rank(directory_, 1);
  ASSERT_GT(stopped, 0);
  kill(stopped, SIGSTOP);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("has given no sign of life"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("weft: rank 1 on host '"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("; start 2 of at most 2, on 1 rank: `weft train "), std::string::npos) << outcome.err;
  EXPECT_TRUE(fs::exists(path("r/summary.json")));
}

TEST_F(Ranks, OneThatKeepsTheOthersWaitingIsNamed) { expect_named_where_it_is_slow({}); }

TEST_F(Ranks, OneThatKeepsTheOthersWaitingIsNamedWhereTheyAverageTheirWeights) {
  expect_named_where_it_is_slow({"--set", "averaging.period=4"});
}

TEST_F(Ranks, OneThatStaysSlowTakesFewerGrains) {
  with_a_slow_rank({"--set", "balance.grains=16"}, "shares", [](const nlohmann::json& record, const Outcome& outcome) {
    const std::vector<int64_t> grains = record["grains"];
    ASSERT_EQ(grains.size(), 2u) << record;
    EXPECT_EQ(grains[0] + grains[1], 16) << record;
    EXPECT_LT(grains[1], 8) << record;
    EXPECT_EQ(record["before"], (std::vector<int64_t>{8, 8})) << record;
    EXPECT_EQ(count_of(outcome.err, " on, by their speed, rank 0 on host '"), 1) << outcome.err;
  });
}

TEST_F(Ranks, ThePageOfExplainHasWhatTheyExchange) {
  write_idx("train", 64, 16);
  write_idx("test", 64, 16);
  ASSERT_EQ(weft_on(2, lenet("r", "1")).code, 0);
  const Outcome outcome = weft_on(2, {"explain", "r", "--steps", "1", "--html", "r.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = read_all(path("r.html"));
  for (const char* text : {"<h2>Communication between ranks</h2>", "2 ranks of", "starts at ms</th>", "in each step;"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

TEST_F(Ranks, ExplainTellsOfEachOfThem) {
  ASSERT_EQ(weft_on(2, tiny_run("r", {"--epochs", "1", "--zero", "1"})).code, 0);
  const Outcome outcome = weft_on(2, {"explain", "r", "--steps", "1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto ranks = nlohmann::json::parse(outcome.out)["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks[rank]["rank"], rank);
    EXPECT_GT(ranks[rank]["state_bytes"], 0);
    EXPECT_GT(ranks[rank]["exchanged_bytes"], 0);
  }
  EXPECT_NE(weft_on(2, {"explain", "r", "--steps", "1"}).out.find("\nrank 1: states "), std::string::npos);
}

TEST_F(Ranks, WhatAMeanOfTheirWeightsExchangesIsExplained) {
  write_idx("train", 64, 16);
  write_idx("test", 64, 16);
  std::vector<std::string> train = lenet("r", "1");
  train.insert(train.end(), {"--set", "averaging.period=3"});
  ASSERT_EQ(weft_on(2, train).code, 0);
  const Outcome outcome = weft_on(2, {"explain", "r", "--comm", "--steps", "1"});
  EXPECT_NE(outcome.out.find("Ranks exchange nothing in their steps"), std::string::npos) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("After 3 of them"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1 collective of "), std::string::npos) << outcome.out;
}

// As where the link to another host is cut: this host's ranks end, and mpirun waits for the others for ever.
TEST_F(Ranks, ALaunchEndsWhereMpirunWaitsForNobody) {
  fs::create_directory(path("bin"));
  write_all(path("bin/mpirun"), "#!/bin/bash\nshift 3\n\"$@\"\nwhile :; do sleep 0.1; done\n");
  fs::permissions(path("bin/mpirun"), fs::perms::owner_all);
  std::vector<std::string> arguments = {"launch", "-n", "2", "--"};
  const std::vector<std::string> train = tiny_run("r", {"--epochs", "300"});
  arguments.insert(arguments.end(), train.begin(), train.end());
  const std::string search = "PATH=" + path("bin").string() + ":/usr/bin:/bin";
  Process process(arguments, directory_, -1, {search});
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 128 + SIGKILL) << outcome.err;
}

TEST_F(Ranks, ALaunchedRunGoesOnWithoutARankThatWasKilled) {
  const std::vector<std::string> train = tiny_run("r", {"--epochs", "300", "--set", "checkpoint.every_epochs=10"});
  ASSERT_EQ(weft(tiny_run("whole", {"--epochs", "300", "--set", "checkpoint.every_epochs=10"})).code, 0);
  std::vector<std::string> arguments = {"launch", "-n", "2", "--restarts", "1", "--"};
  arguments.insert(arguments.end(), train.begin(), train.end());
  Process process(arguments, directory_);
  while (!process.has_ended() && !fs::exists(path("r/checkpoints/best")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::vector<pid_t> ranks = training_processes();
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks.back(), SIGKILL);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("start 2 of at most 2, on 1 rank: `weft train --resume r --quiet --threads 1`"),
            std::string::npos)
      << outcome.err;
  expect_same_losses("r", "whole");
}

TEST_F(Ranks, LaunchHandsARequestToStopToTheRanks) {
  std::vector<std::string> arguments = {"launch", "-n", "2", "--"};
  const std::vector<std::string> train = tiny_run("r", {"--epochs", "3000", "--set", "checkpoint.every_epochs=10"});
  arguments.insert(arguments.end(), train.begin(), train.end());
  Process process(arguments, directory_);
  while (!process.has_ended() && !fs::exists(path("r/checkpoints/best")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  process.send(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: interrupted after step "), 1) << outcome.err;
}

TEST_F(Ranks, LaunchErrors) {
  expect_error(weft({"launch", "-n", "2", "--", "eval", "r"}), 2, "weft launch starts `weft train`");
  expect_error(weft({"launch", "-n", "2", "--restarts", "1", "--", "train", "demo"}), 2, "add --run DIR");
}

}  // namespace
}  // namespace weft::cli_tests
