// Whole runs on ranks, which here are threads, that divide the batch and the experts: their losses are those of one
// process with as many groups of tokens, and any number of ranks goes on.
#include <gtest/gtest.h>

#include "tests/support/ranks_rig.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/cpu/cpu_backend.h"

namespace weft::run {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kExpertSamples = 320, kExpertTestSamples = 70;

class ExpertsRun : public RanksTest {
 protected:
  /// 5 steps an epoch.
  static spec::RunSpec spec(double epochs, const std::string& capacity, const std::string& balance) {
    spec::RunSpec spec = drawn_spec("transformer_lm", epochs, 64, 0.001);
    spec.model.options = {{"layers", "2"},  {"heads", "2"},         {"width", "32"},
                          {"experts", "4"}, {"capacity", capacity}, {"balance", balance}};
    spec.optimizer.name = "adamw";
    spec.late_multiply = false;
    spec.evaluation.batch = 64;
    return spec;
  }
  /// Of which no token is left out: then routes are the same whatever the groups.
  static spec::RunSpec without_groups(double epochs) { return spec(epochs, "4", "0"); }
  static spec::RunSpec divided(spec::RunSpec spec, int64_t zero = 0) {
    spec.shard.experts = "data";
    spec.shard.zero = zero;
    spec::resolve(spec);
    return spec;
  }
  static spec::RunSpec in_groups(spec::RunSpec spec, int64_t groups) {
    spec.batch /= groups;
    spec.accumulate = groups;
    spec::resolve(spec);
    return spec;
  }
  static Library library() { return drawn_library(drawn_sentences(), kExpertSamples, kExpertTestSamples); }
  /// With so many ranks and these changes, to the losses of "whole".
  void expect_goes_on(const std::string& name, int ranks, const std::vector<std::string>& changes) {
    const auto resume = [&](const RunOptions& options) {
      return resume_run(library(), path(name), 1, options, changes);
    };
    EXPECT_TRUE(on_ranks(one_host(ranks), resume).finished) << name;
    expect_same_losses(name, "whole", 2e-5);
  }
};

TEST_F(ExpertsRun, RanksAreOneProcessWithAsManyGroups) {
  for (const int ranks : {2, 4}) {
    const std::string alone = fmt::format("alone{}", ranks), together = fmt::format("together{}", ranks);
    train(library(), in_groups(spec(4, "1", "0.01"), ranks), {}, alone);
    train(library(), divided(spec(4, "1", "0.01")), one_host(ranks), together);
    expect_same_losses(together, alone);
  }
}

TEST_F(ExpertsRun, HostsAndNarrowNumbersWork) {
  spec::RunSpec run = spec(2, "1.25", "0.01");
  train(library(), divided(run), one_host(4), "host");
  train(library(), divided(run), {"a", "a", "b", "b"}, "hosts");
  expect_same_losses("hosts", "host");
  if (!CpuBackend(1).computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  run.precision = "bf16";
  train(library(), divided(run), one_host(4), "narrow");
  expect_near_losses("narrow", "host", 0.02);
}

TEST_F(ExpertsRun, CheckpointsAreWholeAndAnyNumberOfRanksGoesOn) {
  spec::RunSpec alone = without_groups(3);
  spec::resolve(alone);
  train(library(), alone, {}, "whole");
  struct Case {
    int ranks;
    int64_t zero;
    std::vector<std::string> changes;
  };
  int number = 0;
  for (const Case& next : {Case{4, 0, {}}, Case{2, 0, {}}, Case{0, 0, {}}, Case{4, 0, {"shard.experts=whole"}},
                           Case{2, 3, {"shard.experts=whole", "shard.zero=1"}}, Case{2, 1, {}},
                           Case{2, 0, {"shard.experts=whole", "mesh.tensor=2"}}}) {
    const std::string name = fmt::format("cut{}", number++);
    on_ranks(one_host(4), [&](const RunOptions& given) {
      return start_run(library(), divided(without_groups(3), next.zero), path(name), stopped_after(given, 7));
    });
    const Checkpoint checkpoint = newest(name);
    EXPECT_EQ(checkpoint.manifest.parts.ranks, 4);
    EXPECT_EQ(checkpoint.state.plain("blocks.1.mlp.fc1.weight").shape(), (Shape{4, 128, 32}));
    expect_goes_on(name, next.ranks, next.changes);
  }
}

TEST_F(ExpertsRun, RanksThatAlsoDivideEachExpertGoOnAsOthersDo) {
  spec::RunSpec alone = without_groups(3);
  spec::resolve(alone);
  train(library(), alone, {}, "whole");
  spec::RunSpec run = divided(without_groups(3));
  run.mesh.tensor = 2;
  spec::resolve(run);
  struct Case {
    int ranks;
    std::vector<std::string> changes;
  };
  int number = 0;
  for (const Case& next : {Case{4, {}}, Case{2, {"mesh.tensor=1"}}, Case{2, {"shard.experts=whole"}},
                           Case{0, {"shard.experts=whole", "mesh.tensor=1"}}}) {
    const std::string name = fmt::format("cut{}", number++);
    on_ranks(one_host(4),
             [&](const RunOptions& given) { return start_run(library(), run, path(name), stopped_after(given, 7)); });
    EXPECT_EQ(newest(name).state.plain("blocks.1.mlp.fc1.weight").shape(), (Shape{4, 128, 32}));
    expect_goes_on(name, next.ranks, next.changes);
  }
}

TEST_F(ExpertsRun, ARunThatWasStoppedGoesOnWithTheSameBits) {
  const spec::RunSpec run = divided(spec(2, "1", "0.01"));
  train(library(), run, one_host(2), "whole");
  on_ranks(one_host(2),
           [&](const RunOptions& given) { return start_run(library(), run, path("cut"), stopped_after(given, 7)); });
  on_ranks(one_host(2), [&](const RunOptions& options) { return resume_run(library(), path("cut"), 1, options); });
  expect_same_bits("cut", "whole");
}

TEST_F(ExpertsRun, ALostRankIsNamedByAllOthers) {
  constexpr int kLost = 2;
  const spec::RunSpec run = divided(spec(50, "1", "0.01"));
  comm::LocalGroup group(one_host(4));
  const std::vector<std::string> errors = comm::errors_of_ranks(group, [&](comm::Communicator& ranks) {
    RunOptions options{.ranks = &ranks};
    options.stop_requested = [&, asked = 0]() mutable {
      if (ranks.rank() == kLost && ++asked == 8) group.silence(kLost);
      return false;
    };
    start_run(library(), run, path("run"), options);
  });
  for (size_t rank = 0; rank < errors.size(); ++rank)
    if (rank != kLost) {
      EXPECT_NE(errors[rank].find("rank 2 on host 'host'"), std::string::npos) << rank << ": " << errors[rank];
    }
}

TEST_F(ExpertsRun, EachHostKeepsTheExpertsOfAllRanks) {
  const spec::RunSpec run = divided(spec(1, "1", "0.01"));
  train(library(), run, {"a", "b"}, "wanted");
  const auto disk = [&](int rank) { return "disk-" + std::to_string(rank) + "/run"; };
  on_ranks({"a", "b"}, [&](const RunOptions& given) {
    RunOptions options = given;
    options.copies = true;
    return start_run(library(), run, path(disk(options.ranks->rank())), options);
  });
  for (int rank = 0; rank < 2; ++rank) expect_same_bits(disk(rank), "wanted");
}

}  // namespace
}  // namespace weft::run
