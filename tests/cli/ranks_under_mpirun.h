// Starts weft under mpirun, and finds its ranks.
#pragma once

#include <functional>
#include <map>

#include "tests/cli/run_files.h"
#include "weft/launch/process_table.h"

namespace weft::cli_tests {

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

}  // namespace weft::cli_tests
