// Checkpoints: whole or absent, canonical, rotated, and honest about damage.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "tests/support/temporary_folder.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/run/checkpoint/store.h"
#include "weft/tensor/safetensors.h"

namespace weft::run {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public ::testing::Test {
 protected:
  static State state_of(float first) {
    State state;
    std::vector<float> values(2 * 16 * 3 * 3);
    for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
    state.set("conv.weight", Tensor::of({2, 16, 3, 3}, values));
    state.set("optimizer/velocity/conv.weight", Tensor::of({1}, std::array<float, 1>{first / 3}));
    return state;
  }
  static run::Manifest manifest_at(int64_t step) {
    run::Manifest manifest;
    manifest.spec_hash = "abc";
    manifest.seed = 7;
    manifest.position.step = step;
    manifest.position.loss_sum = 0.1 + 0.2;
    return manifest;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  static void flip_byte(const fs::path& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at);
    file.put(byte);
  }
  std::optional<run::Checkpoint> newest() {
    warnings_.clear();
    return run::CheckpointStore(directory_, 3).read_newest([this](const std::string& line) {
      warnings_.push_back(line);
    });
  }

  const TemporaryFolder folder_;
  const fs::path directory_ = folder_.path();
  std::vector<std::string> warnings_;
};

TEST_F(CheckpointTest, ReadsBackWhatWasWritten) {
  run::CheckpointStore(directory_, 3).write(state_of(5), manifest_at(12));
  const std::optional<run::Checkpoint> checkpoint = newest();
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->manifest.position.step, 12);
  EXPECT_EQ(checkpoint->manifest.position.loss_sum, 0.1 + 0.2) << "to the last bit";
  EXPECT_EQ(checkpoint->state.get("conv.weight").data_as<float>()[7], 12);
  EXPECT_EQ(checkpoint->state.get("optimizer/velocity/conv.weight").data_as<float>()[0], 5.0f / 3);
}

TEST_F(CheckpointTest, HoldsPlainTensorsWhateverTheLayoutOfTheState) {
  State blocked = state_of(5);
  blocked.set("conv.weight", blocked.get("conv.weight").with_layout(parse_layout("ABcd16b16a", 4)));
  run::CheckpointStore(directory_, 3).write(state_of(5), manifest_at(1));
  run::CheckpointStore(directory_, 3).write(blocked, manifest_at(2));
  EXPECT_EQ(read_text(directory_ / "step-00000001/model.safetensors"),
            read_text(directory_ / "step-00000002/model.safetensors"));
}

TEST_F(CheckpointTest, KeepsTheNewestAndTheBest) {
  run::CheckpointStore store(directory_, 2);
  for (int64_t step = 1; step <= 5; ++step) {
    run::Manifest manifest = manifest_at(step);
    manifest.best = run::BestCheckpoint{.step = std::min<int64_t>(step, 2), .score = 0.5};
    store.write(state_of(static_cast<float>(step)), manifest);
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"best", "step-00000002", "step-00000004", "step-00000005"}));
  EXPECT_EQ(store.read_best().state.get("conv.weight").data_as<float>()[0], 2);
}

TEST_F(CheckpointTest, ADamagedNewerOneCostsNoNewOneItsPlace) {
  run::CheckpointStore store(directory_, 1);
  store.write(state_of(9), manifest_at(9));
  fs::resize_file(directory_ / "step-00000009/model.safetensors", 3);
  const fs::path written = store.write(state_of(4), manifest_at(4));
  EXPECT_TRUE(fs::exists(written));
  EXPECT_EQ(newest()->manifest.position.step, 4);
}

TEST_F(CheckpointTest, DamagedOnesAreSetAsideAndCountNoMore) {
  run::CheckpointStore store(directory_, 1);
  for (const int64_t step : {3, 9}) run::CheckpointStore(directory_, 2).write(state_of(1), manifest_at(step));
  fs::resize_file(directory_ / "step-00000009/model.safetensors", 3);
  store.set_damaged_aside(3);
  EXPECT_EQ(names(), (std::vector<std::string>{"damaged-step-00000009", "step-00000003"}));
  store.write(state_of(2), manifest_at(6));
  EXPECT_EQ(names(), (std::vector<std::string>{"damaged-step-00000009", "step-00000006"}));
  EXPECT_EQ(newest()->manifest.position.step, 6);
  EXPECT_TRUE(warnings_.empty());
}

TEST(BestCheckpoint, WhatIsNoNumberBeatsNothing) {
  const run::BestCheckpoint none, nan{.step = 1, .loss = std::nan("")}, two{.step = 2, .loss = 2},
      one{.step = 3, .loss = 1};
  EXPECT_FALSE(run::is_better(nan, none));
  EXPECT_FALSE(run::is_better(nan, two));
  EXPECT_TRUE(run::is_better(two, nan));
  EXPECT_TRUE(run::is_better(two, none));
  EXPECT_TRUE(run::is_better(one, two));
  EXPECT_FALSE(run::is_better(two, one));
}

TEST_F(CheckpointTest, NoneAtAllIsNoError) { EXPECT_FALSE(newest()); }

TEST_F(CheckpointTest, WithoutABestSaysSo) {
  run::CheckpointStore store(directory_, 2);
  store.write(state_of(1), manifest_at(1));
  EXPECT_THROW(store.read_best(), Error);
}

TEST_F(CheckpointTest, DamagedNewestFallsBackWithAWarning) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "manifest.json"})
    for (const bool truncated : {false, true}) {
      fs::remove_all(directory_);
      run::CheckpointStore store(directory_, 3);
      store.write(state_of(1), manifest_at(1));
      const fs::path path = store.write(state_of(2), manifest_at(2)) / file;
      if (truncated)
        fs::resize_file(path, fs::file_size(path) / 2);
      else if (std::string(file) == "manifest.json")
        fs::remove(path);
      else
        flip_byte(path, static_cast<std::streamoff>(fs::file_size(path)) - 1);
      const std::optional<run::Checkpoint> checkpoint = newest();
      ASSERT_TRUE(checkpoint);
      EXPECT_EQ(checkpoint->manifest.position.step, 1);
      ASSERT_EQ(warnings_.size(), 1u);
      EXPECT_NE(warnings_[0].find("step-00000002"), std::string::npos) << warnings_[0];
      EXPECT_NE(warnings_[0].find(file), std::string::npos) << warnings_[0];
    }
}

TEST_F(CheckpointTest, AllDamagedIsAnError) {
  run::CheckpointStore(directory_, 3).write(state_of(1), manifest_at(1));
  fs::resize_file(directory_ / "step-00000001/model.safetensors", 3);
  EXPECT_THROW(newest(), Error);
}

TEST_F(CheckpointTest, OfAStateThatIsNotFiniteIsRefused) {
  run::CheckpointStore store(directory_, 3);
  store.write(state_of(1), manifest_at(1));
  State bad = state_of(2);
  bad.get("conv.weight").data_as<float>()[9] = std::nanf("");
  try {
    store.write(bad, manifest_at(2));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_NE(std::string(error.what()).find("'conv.weight' holds nan after step 2"), std::string::npos);
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000001"})) << "nothing half-written";
}

TEST_F(CheckpointTest, TidyRemovesLeftoversAndRepairsTheLink) {
  run::CheckpointStore store(directory_, 3);
  store.write(state_of(1), manifest_at(1));
  fs::create_directory(directory_ / ".unfinished-step-00000002-77");
  write_atomically(directory_ / ".unfinished-step-00000002-77/model.safetensors", "half");
  store.tidy(run::BestCheckpoint{.step = 1, .score = 0.5});
  EXPECT_EQ(names(), (std::vector<std::string>{"best", "step-00000001"}));
}

TEST_F(CheckpointTest, WritingAStepAgainLeavesNoMomentWithoutIt) {
  for (const char* name : {"a", "b"}) fs::create_directory(directory_ / name);
  if (renameat2(AT_FDCWD, (directory_ / "a").c_str(), AT_FDCWD, (directory_ / "b").c_str(), RENAME_EXCHANGE) != 0)
    GTEST_SKIP() << "this file system cannot exchange two directories";
  for (const char* name : {"a", "b"}) fs::remove(directory_ / name);
  run::CheckpointStore store(directory_, 3);
  const fs::path model = store.write(state_of(0), manifest_at(1)) / "model.safetensors";
  std::atomic<bool> ended = false;
  int missing = 0, looks = 0;
  std::thread watcher([&] {
    for (; !ended; ++looks)
      if (access(model.c_str(), F_OK) != 0) ++missing;
  });
  for (int round = 1; round <= 30; ++round) store.write(state_of(static_cast<float>(round)), manifest_at(1));
  ended = true;
  watcher.join();
  EXPECT_EQ(missing, 0) << "of " << looks;
  EXPECT_EQ(newest()->state.get("conv.weight").data_as<float>()[0], 30);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000001"}));
}

TEST_F(CheckpointTest, MovedAsideByAKilledWriterGetsItsNameBack) {
  run::CheckpointStore store(directory_, 3);
  for (int64_t step : {1, 2}) store.write(state_of(static_cast<float>(step)), manifest_at(step));
  fs::rename(directory_ / "step-00000002", directory_ / ".replaced-step-00000002");
  fs::copy(directory_ / "step-00000001", directory_ / ".replaced-step-00000001");
  store.put_back();
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000001", "step-00000002"}));
  EXPECT_EQ(newest()->manifest.position.step, 2);
}

TEST(Manifest, OfARunBeforeMetricsHadNamesIsRead) {
  const std::string text = R"({"format": 1, "spec_hash": "0", "seed": 1, "files": {},
    "position": {"epoch": 1, "step": 4, "step_in_epoch": 0, "loss_sum": 0.0, "correct": 0.0, "samples": 0,
                 "epoch_seconds": 0.0, "train_seconds": 1.0, "step_seconds": 1.0},
    "last_epoch": {"epoch": 0, "step": 4, "train_loss": 1.0, "train_accuracy": 0.5, "test_loss": 0.75,
                   "test_accuracy": 0.25, "test_token_accuracy": null, "test_mean_iou": 0.125, "test_rmse": null,
                   "test_r2": null, "train_seconds": 1.0},
    "best": {"step": 4, "accuracy": 0.25, "loss": null}})";
  const Manifest manifest = parse_manifest(text, "manifest.json");
  EXPECT_EQ(manifest.last_epoch->test_metrics, (MetricValues{{"accuracy", 0.25}, {"mean_iou", 0.125}}));
  EXPECT_EQ(manifest.best->score, 0.25);
  const Manifest again = parse_manifest(print_manifest(manifest), "manifest.json");
  EXPECT_EQ(again.last_epoch->test_metrics, manifest.last_epoch->test_metrics);
  EXPECT_EQ(again.best->score, 0.25);
}

TEST_F(CheckpointTest, ManifestOfAnotherFormatIsRefused) {
  try {
    run::parse_manifest(R"({"format": 99})", "m.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "'m.json' has format 99, this weft reads format 1");
  }
}

TEST_F(CheckpointTest, WritesSafetensorsThatOthersRead) {
  run::CheckpointStore(directory_, 3).write(state_of(5), manifest_at(3));
  const SafetensorsFile file = read_safetensors(directory_ / "step-00000003/model.safetensors");
  EXPECT_EQ(file.tensors.size(), 1u) << "the optimiser's slots stand in the other file";
  EXPECT_EQ(file.metadata.at("format"), "pt");
}

}  // namespace
}  // namespace weft::run
