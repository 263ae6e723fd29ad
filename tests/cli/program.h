// Runs the program `weft` as a user would and says what came of it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace weft::cli_tests {

namespace fs = std::filesystem;

inline std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

inline void write_all(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

struct Outcome {
  int code = -1;  // exit code; 128 + signal where one ended it
  std::string out, err;
};

/// A running program; its output goes to files in `directory`.
class Process {
 public:
  /// `file_size_limit` in bytes; negative: none. A full disk looks like a reached limit. `environment` holds further
  /// variables: NAME=VALUE, without spaces; behind them may stand a launcher with its options.
  Process(const std::vector<std::string>& arguments, const fs::path& directory, int64_t file_size_limit = -1,
          const std::vector<std::string>& environment = {})
      : out_(directory / ".stdout"), err_(directory / ".stderr") {
    std::string command;
    if (file_size_limit >= 0) command = "ulimit -f " + std::to_string((file_size_limit + 1023) / 1024) + "; ";
    command += "exec ";
    if (!environment.empty()) command += "env ";
    for (const std::string& variable : environment) command += variable + " ";
    command += "\"$0\" \"$@\"";
    std::vector<std::string> words = {"bash", "-c", command, WEFT_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = out_.string(), err = err_.string(), where = directory.string();
    pid_ = fork();
    if (pid_ == 0) {
      const int out_file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      const int err_file = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (out_file < 0 || err_file < 0 || chdir(where.c_str()) != 0) _exit(126);
      dup2(out_file, 1);
      dup2(err_file, 2);
      signal(SIGINT, SIG_DFL);  // ignored where the tests run in the background of a script
      execvp("bash", argv.data());
      _exit(127);
    }
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Nothing where it has ended: -1 would be everybody.
  void send(int signal) const {
    if (pid_ > 0) kill(pid_, signal);
  }
  pid_t pid() const { return pid_; }
  bool has_ended() {
    if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
    return pid_ <= 0;
  }
  Outcome wait() {
    if (pid_ > 0) waitpid(pid_, &status_, 0);
    pid_ = -1;
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), read_all(out_), read_all(err_)};
  }

 private:
  fs::path out_, err_;
  pid_t pid_ = -1;
  int status_ = 0;
};

/// A fresh directory for each test, with a small data set in it: 4 classes of 8x8 images, each class a bright quarter.
class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_idx("train", 320, 8);
    write_idx("test", 72, 8);
  }

  Outcome weft(const std::vector<std::string>& arguments, int64_t file_size_limit = -1) {
    return Process(arguments, directory_, file_size_limit).wait();
  }
  fs::path path(const std::string& name) const { return directory_ / name; }
  static std::string data() { return "idx:train-images,train-labels,test-images,test-labels"; }
  /// Flags of a run that takes a fraction of a second.
  static std::vector<std::string> tiny_run(const std::string& run, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"train", "--model", "mlp", "--data",    data(), "--run",
                                          run,     "--batch", "32",  "--threads", "1",    "--quiet"};
    bool has_epochs = false;
    for (const std::string& word : more) has_epochs = has_epochs || word == "--epochs";
    if (!has_epochs) arguments.insert(arguments.end(), {"--epochs", "2"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// Trains the recipe that `weft init` writes for the data, for so many epochs, after init has said `says`. The
  /// summary.
  std::string train_first_recipe(const std::string& data, const std::string& says, const std::string& epochs) {
    const Outcome written = weft({"init", data, "-o", "first.toml", "--threads", "1"});
    EXPECT_EQ(written.code, 0) << written.err;
    EXPECT_NE(written.out.find(says), std::string::npos) << written.out;
    const Outcome trained =
        weft({"train", "first.toml", "--run", "first", "--threads", "1", "--quiet", "--epochs", epochs});
    EXPECT_EQ(trained.code, 0) << trained.err;
    return read_all(path("first/summary.json"));
  }
  void write_idx(const std::string& name, int count, int size, int label_limit = 4) {
    const auto big_endian = [](int value) {
      std::string bytes;
      for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((value >> shift) & 0xff);
      return bytes;
    };
    std::string images = big_endian(0x803) + big_endian(count) + big_endian(size) + big_endian(size);
    std::string labels = big_endian(0x801) + big_endian(count);
    uint32_t noise = 12345;
    for (int sample = 0; sample < count; ++sample) {
      const int label = sample % label_limit;
      labels += static_cast<char>(label);
      for (int row = 0; row < size; ++row)
        for (int column = 0; column < size; ++column) {
          noise = noise * 1664525u + 1013904223u;
          const bool bright = (row >= size / 2) == (label % 4 >= 2) && (column >= size / 2) == (label % 2 == 1);
          images += static_cast<char>((bright ? 150 : 0) + static_cast<int>(noise >> 25));
        }
    }
    write_all(directory_ / (name + "-images"), images);
    write_all(directory_ / (name + "-labels"), labels);
  }

  const TemporaryFolder folder_;
  const fs::path directory_ = folder_.path();
};

/// Exit code, one line on stderr that begins with "weft: " and holds `part`.
inline void expect_error(const Outcome& outcome, int code, const std::string& part) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.err.substr(0, 6), "weft: ") << outcome.err;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << "wanted: " << part << "\ngot: " << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

}  // namespace weft::cli_tests
