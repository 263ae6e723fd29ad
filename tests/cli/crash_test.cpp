// The world fails at a change of a file in the run directory: power is lost, the disk is full, or read-only, or broken.
// Whatever the moment, going on gives the same weights and the same records, and nothing half-written stays.
#include <cerrno>
#include <random>
#include <set>

#include "tests/cli/run_files.h"

namespace weft::cli_tests {
namespace {

class Crash : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    const Outcome outcome = run("straight", "count:" + path("changes").string());
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    changes_ = std::stol(read_all(path("changes")));
    ASSERT_GT(changes_, 100) << "the file operations are not seen";
  }

  Outcome run(const std::string& name, const std::string& fault) {
    return Process(tiny_run(name, arguments_), directory_, -1,
                   {"LD_PRELOAD=" WEFT_FAULT_INJECTION, "WEFT_FAULT_BELOW=" + path(name).string(),
                    "WEFT_FAULT=" + fault, "ASAN_OPTIONS=verify_asan_link_order=0"})
        .wait();
  }
  /// As a user would: with --resume where there is a run, else once more from the beginning.
  void expect_goes_on(const std::string& name) {
    const bool resumes = fs::exists(path(name) / "spec.toml");
    const Outcome outcome =
        weft(resumes ? std::vector<std::string>{"train", "--resume", name, "--quiet"} : tiny_run(name, arguments_));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(last_state(name) == last_state("straight")) << "the weights differ";
    EXPECT_EQ(records(name), records("straight"));
    EXPECT_EQ(json_of(name + "/summary.json")["test_loss"], json_of("straight/summary.json")["test_loss"]);
    expect_nothing_half_written(name);
  }
  void expect_nothing_half_written(const std::string& name) const {
    if (!fs::exists(path(name))) return;
    for (const auto& entry : fs::recursive_directory_iterator(path(name))) {
      const std::string file = entry.path().filename().string();
      EXPECT_EQ(file.find(".tmp-"), std::string::npos) << entry.path();
      EXPECT_FALSE(file.starts_with(".")) << entry.path();
    }
  }
  /// All of them where the environment says WEFT_CRASH=all.
  std::vector<long> random_changes(size_t count, unsigned seed) const {
    if (const char* which = std::getenv("WEFT_CRASH"); which != nullptr && std::string_view(which) == "all")
      count = static_cast<size_t>(changes_);
    std::mt19937 random(seed);
    std::set<long> chosen;
    while (chosen.size() < count) chosen.insert(1 + static_cast<long>(random() % static_cast<unsigned long>(changes_)));
    return {chosen.begin(), chosen.end()};
  }
  void expect_survives_refusals(int code, const char* reason, unsigned seed, bool leaves_nothing) {
    // The last file of a run gets its name and its directory is synced: neither takes space, all is written.
    constexpr long kLastWithoutSpace = 2;
    for (const long at : random_changes(16, seed)) {
      if (at > changes_ - kLastWithoutSpace) continue;
      SCOPED_TRACE("change " + std::to_string(at) + " of " + std::to_string(changes_));
      const std::string name = "r" + std::to_string(at);
      const Outcome outcome = run(name, "refuse:" + std::to_string(code) + ":" + std::to_string(at));
      expect_error(outcome, 1, reason);
      if (leaves_nothing) expect_nothing_half_written(name);
      expect_goes_on(name);
      fs::remove_all(path(name));
    }
  }

  const std::vector<std::string> arguments_ = {
      "--epochs", "4", "--set", "checkpoint.every_steps=7", "--set", "augment.flip=random", "--tensorboard"};
  long changes_ = 0;
};

TEST_F(Crash, PowerLostAtAnyMomentAndResumedIsBitwiseTheSame) {
  for (const long at : random_changes(50, 1)) {
    SCOPED_TRACE("change " + std::to_string(at) + " of " + std::to_string(changes_));
    const std::string name = "r" + std::to_string(at);
    ASSERT_EQ(run(name, "power:" + std::to_string(at)).code, 128 + SIGKILL);
    expect_goes_on(name);
    fs::remove_all(path(name));
  }
}

TEST_F(Crash, DiskFullAtAnyMoment) { expect_survives_refusals(ENOSPC, "No space left on device", 2, true); }

TEST_F(Crash, DiskReadOnlyFromAnyMoment) { expect_survives_refusals(EROFS, "Read-only file system", 3, false); }

TEST_F(Crash, DiskBrokenFromAnyMoment) { expect_survives_refusals(EIO, "Input/output error", 4, true); }

}  // namespace
}  // namespace weft::cli_tests
