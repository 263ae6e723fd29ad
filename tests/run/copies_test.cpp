// Hosts with disks of their own, which here are folders of the ranks: who keeps the run directory, and from which copy
// a run goes on.
#include "weft/run/copies.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/ranks_rig.h"
#include "weft/base/files.h"
#include "weft/comm/measure/measure.h"
#include "weft/run/run_directory.h"

namespace weft::run {
namespace {

namespace fs = std::filesystem;

class Copies : public RanksTest {
 protected:
  Copies() {
    comm::LocalGroup group(hosts_);
    write_atomically(path("links.toml"), comm::cluster_text(group.communicator(0), {}));
  }
  const Hosts hosts_ = {"a", "b"};
  const Library library_ = drawn_library(drawn_images(), 320, 70);

  spec::RunSpec spec(int64_t seed = 1) const {
    spec::RunSpec spec = drawn_spec("lenet5", 3, 64, 0.01);  // 5 steps an epoch
    spec.seed = seed;
    spec.checkpoint.every_steps = 2;
    // Links that are measured anew may give another plan, which rounds otherwise.
    spec.cluster = path("links.toml");
    return spec;
  }
  static std::string run_on_disk(int rank) { return "disk-" + std::to_string(rank) + "/run"; }

  RunOutcome start(const spec::RunSpec& spec, int steps = 1000, bool copies = true) const {
    return on_ranks(hosts_, [&](const RunOptions& given) {
      RunOptions options = stopped_after(given, steps);
      options.copies = copies;
      return start_run(library_, spec, path(run_on_disk(options.ranks->rank())), options);
    });
  }
  RunOutcome resume(int steps = 1000, const std::vector<std::string>& changes = {}) const {
    said_.clear();
    return on_ranks(hosts_, [&](const RunOptions& given) {
      RunOptions options = stopped_after(given, steps);
      options.copies = true;
      if (options.ranks->rank() == 0) options.note = [&](const std::string& line) { said_ += line + "\n"; };
      return resume_run(library_, path(run_on_disk(options.ranks->rank())), 0, options, changes);
    });
  }
  mutable std::string said_;  // by the first rank, when the run went on
  void expect_that_all_are(const std::string& wanted) const {
    for (int rank = 0; rank < 2; ++rank) expect_same_bits(run_on_disk(rank), wanted);
  }
  /// Names of the files of the newest checkpoint.
  std::set<std::string> files_of_newest(const std::string& run) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(newest(run).path)) names.insert(entry.path().filename().string());
    return names;
  }
  /// A whole run on one disk, without copies.
  void train_wanted() const { train(library_, spec(), hosts_, "wanted"); }
};

TEST_F(Copies, EachHostKeepsAFullOne) {
  train_wanted();
  EXPECT_TRUE(start(spec()).finished);
  expect_that_all_are("wanted");
  for (const char* file : {"spec.toml", "data.json", "plan.json", "summary.json", "checkpoints/best/model.safetensors"})
    EXPECT_TRUE(fs::exists(path(run_on_disk(1)) + "/" + file)) << file;
}

TEST_F(Copies, WithoutThemTheFirstRankAloneKeepsTheRun) {
  EXPECT_TRUE(start(spec(), 1000, /*copies=*/false).finished);
  EXPECT_TRUE(fs::exists(path(run_on_disk(0))));
  EXPECT_FALSE(fs::exists(path("disk-1")));
}

TEST_F(Copies, HostsThatShareADiskKeepOne) {
  std::vector<int> keeps(3);
  comm::run_ranks({"a", "b", "c"}, [&](comm::Communicator& ranks) {
    const std::string disk = ranks.rank() < 2 ? "shared/run" : "own/run";
    keeps[static_cast<size_t>(ranks.rank())] = keeps_directory(&ranks, path(disk), /*copies=*/true) ? 1 : 0;
  });
  EXPECT_EQ(keeps, (std::vector<int>{1, 0, 1}));
  EXPECT_TRUE(fs::is_empty(path("shared"))) << "no question is left behind";
}

TEST_F(Copies, OfTheRanksOfAHostTheFirstKeepsIt) {
  std::vector<int> keeps(3);
  comm::run_ranks({"a", "b", "b"}, [&](comm::Communicator& ranks) {
    const std::string disk = ranks.rank() == 0 ? "a/run" : "b/run";
    keeps[static_cast<size_t>(ranks.rank())] = keeps_directory(&ranks, path(disk), /*copies=*/true) ? 1 : 0;
  });
  EXPECT_EQ(keeps, (std::vector<int>{1, 1, 0}));
}

TEST_F(Copies, AHostThatHasNothingGetsTheWholeRun) {
  train_wanted();
  EXPECT_FALSE(start(spec(), 7).finished);
  for (const char* lost : {"disk-0", "disk-1"}) {
    fs::remove_all(path(lost));
    EXPECT_FALSE(resume(2).finished) << lost;
  }
  EXPECT_TRUE(resume().finished);
  expect_that_all_are("wanted");
}

/// What ranks share, in one of these ways.
std::vector<spec::RunSpec> of_shared_states(const spec::RunSpec& whole) {
  std::vector<spec::RunSpec> all(4, whole);
  all[0].shard.zero = 1;
  all[1].shard.zero = 3;
  all[2].mesh.tensor = 2;
  all[3].mesh.pipeline = 2;
  for (spec::RunSpec& one : all) one.late_multiply = false;
  return all;
}

TEST_F(Copies, EachHostKeepsThePartsOfAllRanks) {
  int number = 0;
  for (const spec::RunSpec& shared : of_shared_states(spec())) {
    const std::string wanted = "wanted" + std::to_string(number++);
    train(library_, shared, hosts_, wanted);
    fs::remove_all(path("disk-0"));
    fs::remove_all(path("disk-1"));
    EXPECT_TRUE(start(shared).finished);
    expect_that_all_are(wanted);
    for (const char* disk : {"disk-0", "disk-1"})
      EXPECT_EQ(files_of_newest(std::string(disk) + "/run"), files_of_newest(wanted)) << disk;
  }
}

TEST_F(Copies, ARunOfSharedStatesOutlivesEitherHost) {
  int number = 0;
  for (const spec::RunSpec& shared : of_shared_states(spec())) {
    const std::string wanted = "wanted" + std::to_string(number++);
    train(library_, shared, hosts_, wanted);
    for (const char* lost : {"disk-0", "disk-1"}) {
      fs::remove_all(path("disk-0"));
      fs::remove_all(path("disk-1"));
      EXPECT_FALSE(start(shared, 7).finished);
      fs::remove_all(path(lost));
      EXPECT_TRUE(resume().finished) << lost;
      expect_that_all_are(wanted);
    }
  }
}

TEST_F(Copies, AnOlderOneIsMadeNew) {
  train_wanted();
  EXPECT_FALSE(start(spec(), 4).finished);
  fs::copy(path("disk-0"), path("old"), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  EXPECT_FALSE(resume(5).finished);
  fs::remove_all(path("disk-0"));
  fs::rename(path("old"), path("disk-0"));
  EXPECT_TRUE(resume().finished);
  expect_that_all_are("wanted");
}

TEST_F(Copies, ADamagedCheckpointIsTakenFromTheOtherHost) {
  train_wanted();
  EXPECT_FALSE(start(spec(), 7).finished);
  const fs::path checkpoint = newest(run_on_disk(0)).path / "model.safetensors";
  fs::resize_file(checkpoint, fs::file_size(checkpoint) - 1);
  EXPECT_TRUE(resume().finished);
  expect_that_all_are("wanted");
}

TEST_F(Copies, WhatIsLeftOutAndWhoGetsWhatIsSaid) {
  EXPECT_FALSE(start(spec(), 7).finished);
  const fs::path checkpoint = newest(run_on_disk(0)).path / "model.safetensors";
  fs::resize_file(checkpoint, fs::file_size(checkpoint) - 1);
  EXPECT_FALSE(resume(1).finished);
  EXPECT_NE(said_.find("on host 'a' a checkpoint is left out: "), std::string::npos) << said_;
  EXPECT_NE(said_.find("the checkpoint of step 8 goes from host 'b' to 'a'"), std::string::npos) << said_;
}

TEST_F(Copies, CopiesThatAreAlikeAreNotSentAgain) {
  EXPECT_FALSE(start(spec(), 7).finished);
  EXPECT_FALSE(resume(1).finished);
  EXPECT_EQ(said_.find(" goes from host "), std::string::npos) << said_;
}

TEST_F(Copies, ADamagedBestCheckpointIsTakenFromTheOtherHost) {
  spec::RunSpec validated = spec();
  validated.validation = "0.2";
  validated.evaluation.every_steps = 3;  // of the checkpoints only that of step 6 is measured within the epochs
  validated.evaluation.every_epochs = 0;
  EXPECT_FALSE(start(validated, 8).finished);
  const auto best_of = [&](int rank) { return fs::canonical(path(run_on_disk(rank)) + "/checkpoints/best"); };
  ASSERT_EQ(best_of(0).filename(), "step-00000006");
  ASSERT_NE(newest(run_on_disk(0)).path.filename(), "step-00000006");
  const auto whole = fs::file_size(best_of(1) / "model.safetensors");
  fs::resize_file(best_of(0) / "model.safetensors", whole - 1);
  comm::run_ranks(hosts_, [&](comm::Communicator& ranks) {
    copy_newest(ranks, path(run_on_disk(ranks.rank())), /*keeps=*/true, {});
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(fs::file_size(best_of(rank) / "model.safetensors"), whole) << rank;
}

TEST_F(Copies, AChangeOfTheRecipeStandsInAll) {
  EXPECT_FALSE(start(spec(), 7).finished);
  EXPECT_TRUE(resume(1000, {"epochs=4"}).finished);
  const std::string changes = read_text(path(run_on_disk(0)) + "/changes.jsonl");
  EXPECT_NE(changes.find("epochs"), std::string::npos);
  EXPECT_EQ(read_text(path(run_on_disk(1)) + "/changes.jsonl"), changes);
}

TEST_F(Copies, AUsersOwnFilesStayWhereTheyAre) {
  EXPECT_FALSE(start(spec(), 7).finished);
  write_atomically(path(run_on_disk(0)) + "/caf\xe9.txt", "mine");
  EXPECT_FALSE(resume(1).finished);
  EXPECT_FALSE(fs::exists(path(run_on_disk(1)) + "/caf\xe9.txt"));
}

TEST_F(Copies, NothingChangesWhereAnotherProcessTrains) {
  EXPECT_FALSE(start(spec(), 7).finished);
  const std::string before = read_text(path(run_on_disk(1)) + "/metrics.jsonl");
  write_atomically(path(run_on_disk(0)) + "/metrics.jsonl", before + "\n");
  const auto lock = RunDirectory::lock_at(path(run_on_disk(1)));
  expect_error([&] { resume(); }, ErrorKind::usage, {"another weft trains in"});
  EXPECT_EQ(read_text(path(run_on_disk(1)) + "/metrics.jsonl"), before);
}

TEST_F(Copies, WhereNoHostHasTheRunNothingBegins) {
  expect_error([&] { resume(); }, ErrorKind::usage, {"there is no run directory", "on any host"});
}

TEST_F(Copies, TwoRunsUnderOnePathAreRefused) {
  EXPECT_FALSE(start(spec(1), 4).finished);
  fs::rename(path("disk-0"), path("kept"));
  fs::remove_all(path("disk-1"));
  EXPECT_FALSE(start(spec(2), 4).finished);
  fs::remove_all(path("disk-0"));
  fs::rename(path("kept"), path("disk-0"));
  expect_error([&] { resume(); }, ErrorKind::usage, {"on host 'b'", "on host 'a'", "two runs"});
}

TEST_F(Copies, ANewRunIsRefusedWhereOneHostHoldsOneAlready) {
  EXPECT_FALSE(start(spec(), 4).finished);
  fs::remove_all(path("disk-0"));
  expect_error([&] { start(spec()); }, ErrorKind::usage, {"disk-1/run", "holds a run already"});
  EXPECT_FALSE(fs::exists(path(run_on_disk(0)) + "/spec.toml"));
}

}  // namespace
}  // namespace weft::run
