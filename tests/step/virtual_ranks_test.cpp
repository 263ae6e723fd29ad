// One result at any scale: the same bits on any number of processes, which here are threads.
#include "weft/step/virtual_ranks.h"

#include <gtest/gtest.h>

#include "tests/support/ranks_rig.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/train/evaluate.h"

namespace weft::step {
namespace {

class VirtualRanks : public RanksTest {
 protected:
  static Library library_of(const data::DatasetInfo& info) { return drawn_library(info, 192, 70); }

  static spec::RunSpec spec(const std::string& model, double epochs = 4) {
    spec::RunSpec spec = drawn_spec(model, epochs, 64, 0.01);  // 3 steps an epoch
    spec.virtual_ranks = 4;
    spec.evaluation.batch = 30;  // which 4 shards divide unequally
    spec::resolve(spec);
    return spec;
  }

  void expect_same_on_all(const Library& library, const spec::RunSpec& spec, const std::vector<Hosts>& groups) {
    run::start_run(library, spec, path("alone"), {});
    for (size_t at = 0; at < groups.size(); ++at) {
      const std::string name = "group" + std::to_string(at);
      train(library, spec, groups[at], name);
      expect_same_bits(name, "alone");
    }
  }

  static const std::vector<Hosts>& groups() {
    static const std::vector<Hosts> all = {{"a", "a"},           {"a", "b"},           {"a", "a", "a", "a"},
                                           {"a", "b", "c", "d"}, {"a", "a", "b", "b"}, {"a", "b", "a", "b"}};
    return all;
  }
};

TEST_F(VirtualRanks, TheSameBitsOnOneTwoAndFourProcessesAndAnyHosts) {
  spec::RunSpec run = spec("lenet5", 7);
  run.clip.norm = 1;
  expect_same_on_all(library_of(drawn_images()), run, groups());
}

TEST_F(VirtualRanks, BatchNormEmaAndAugmentation) {
  spec::RunSpec run = spec("resnet9");
  run.model.options = {{"width", "8"}};
  run.ema.decay = 0.9;
  run.augment.crop_padding = 2;
  run.augment.mixup = 0.4;
  run.augment.flip = "random";
  expect_same_on_all(library_of(drawn_images(3)), run, {{"a", "a"}, {"a", "b", "a", "b"}});
}

TEST_F(VirtualRanks, Dropout) {
  if (!CpuBackend(1).computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  spec::RunSpec run = spec("vit_tiny");
  run.model.options = {{"patch", "8"}, {"width", "16"}, {"layers", "1"}, {"heads", "2"}, {"dropout", "0.2"}};
  run.optimizer.name = "adamw";
  run.precision = "bf16";
  expect_same_on_all(library_of(drawn_images()), run, {{"a", "a"}, {"a", "a", "b", "b"}});
}

TEST_F(VirtualRanks, ALossOverTheLabelsThatCount) {
  const Library library = library_of(drawn_translations());
  spec::RunSpec run = spec("seq2seq_attention");
  expect_same_on_all(library, run, {{"a", "a"}, {"a", "b", "c", "d"}});
  // And it is the loss of one process that computes the batch at once.
  run.virtual_ranks = 0;
  run::start_run(library, run, path("plain"), {});
  const auto loss_of = [](const std::string& line) { return std::stod(line.substr(5)); };  // behind "null "
  const auto plain = curve("plain", "epoch"), sharded = curve("alone", "epoch");
  for (size_t epoch = 0; epoch < plain.size(); ++epoch)
    EXPECT_NEAR(loss_of(sharded[epoch]), loss_of(plain[epoch]), 1e-4 * loss_of(plain[epoch])) << epoch;
}

TEST_F(VirtualRanks, CutOnFourRanksARunGoesOnOnOneOrTwo) {
  const Library library = library_of(drawn_images());
  const spec::RunSpec whole = spec("lenet5");
  run::start_run(library, whole, path("whole"), {});
  for (const Hosts& hosts : {Hosts{}, Hosts{"a", "b"}}) {
    const std::string name = "cut" + std::to_string(hosts.size());
    on_ranks({"a", "a", "a", "a"}, [&](const run::RunOptions& given) {
      return run::start_run(library, whole, path(name), given.ranks->rank() == 2 ? stopped_after(given, 4) : given);
    });
    EXPECT_FALSE(std::filesystem::exists(path(name + "/summary.json")));
    const auto go_on = [&](const run::RunOptions& options) { return run::resume_run(library, path(name), 0, options); };
    EXPECT_TRUE(on_ranks(hosts, go_on).finished);
    expect_same_bits(name, "whole");
  }
}

TEST_F(VirtualRanks, RowsOfShardsAreThoseOfProcesses) {
  for (const int64_t count : {0, 1, 3, 30, 31, 64}) {
    const std::vector<int64_t> all = rows_of_shards(count, 8, 0, 1);
    for (const int processes : {2, 4, 8})
      for (int place = 0; place < processes; ++place) {
        const std::vector<int64_t> own = rows_of_shards(count, 8, place, processes);
        const auto [begin, end] = data::rows_of_share(count, place, processes);
        int64_t sum = 0;
        for (size_t shard = 0; shard < own.size(); ++shard) {
          EXPECT_EQ(own[shard], all[static_cast<size_t>(place) * own.size() + shard]);
          sum += own[shard];
        }
        EXPECT_EQ(sum, end - begin);
      }
  }
}

void expect_virtual_refused(spec::RunSpec spec, const std::string& message) {
  try {
    spec::resolve(spec);
    FAIL() << "not refused: " << message;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST_F(VirtualRanks, WhatCannotBeIsSaid) {
  spec::RunSpec run = spec("lenet5");
  run.virtual_ranks = 6;
  expect_virtual_refused(run, "virtual_ranks = 6 is no power of two, as the tree of its sums wants it; choose 4 or 8");
  run = spec("lenet5");
  run.batch = 66;
  expect_virtual_refused(run, "batch = 66 cannot be divided into 4 virtual ranks; choose 68 or another number of them");
  run = spec("lenet5");
  run.accumulate = 2;
  expect_virtual_refused(run, "set batch = 128, virtual_ranks = 8 and accumulate = 1");
  run = spec("lenet5");
  run.batch_norm = "synchronised";
  expect_virtual_refused(run, "leave one of the two away");
}

TEST_F(VirtualRanks, RanksThatCannotShareThemAreTold) {
  const Library library = library_of(drawn_images());
  const auto message_on = [&](const Hosts& hosts) {
    std::string message;
    comm::run_ranks(hosts, [&](comm::Communicator& ranks) {
      try {
        run::start_run(library, spec("lenet5"), path("refused"), {.ranks = &ranks});
      } catch (const comm::SharedError& error) {
        if (ranks.rank() == 0) message = error.what();
      }
    });
    return message;
  };
  EXPECT_EQ(message_on({"a", "a", "a"}),
            "virtual_ranks = 4 cannot be divided among 3 ranks; start 2 of them, or fewer by a power of two");
  EXPECT_EQ(message_on({"a", "a", "a", "b"}),
            "virtual_ranks = 4: host 'a' has 3 ranks, but 'b' has 1; the tree of sums wants as many on each, as mpirun "
            "-H a:2,b:2 places them");
}

TEST_F(VirtualRanks, ThreadsAreThoseThatTheRunBeganWith) {
  const Library library = library_of(drawn_images());
  EXPECT_FALSE(run::start_run(library, spec("lenet5"), path("run"), stopped_after({}, 1)).finished);
  EXPECT_THROW(run::resume_run(library, path("run"), 2, {}), Error);
  EXPECT_TRUE(run::resume_run(library, path("run"), 1, {}).finished);
}

}  // namespace
}  // namespace weft::step
