// Runs on ranks, which here are threads, that combine ways to share a model: their losses are those of one process.
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/ranks_rig.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::run {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kHybridSamples = 320, kHybridTestSamples = 70;

class HybridRun : public RanksTest {
 protected:
  /// 5 steps an epoch, each of 4 micro-batches.
  static spec::RunSpec spec(double epochs = 4, const std::string& dropout = "0.2") {
    spec::RunSpec spec = drawn_spec("transformer_lm", epochs, 64, 0.001);
    spec.model.options = {{"layers", "2"}, {"heads", "4"}, {"width", "32"}, {"dropout", dropout}};
    spec.optimizer.name = "adamw";
    spec.late_multiply = false;
    return spec;
  }
  static spec::RunSpec on_mesh(spec::RunSpec spec, int64_t tensor, int64_t pipeline) {
    spec.mesh.tensor = tensor;
    spec.mesh.pipeline = pipeline;
    spec.evaluation.batch = 64;
    spec::resolve(spec);
    return spec;
  }
  static Library library() { return drawn_library(drawn_sentences(), kHybridSamples, kHybridTestSamples); }
};

TEST_F(HybridRun, FourRanksThatDivideAndShareTheLayers) {
  train(library(), accumulated(spec()), {}, "alone");
  train(library(), on_mesh(spec(), 2, 2), one_host(4), "four");
  expect_same_losses("four", "alone");
  train(library(), on_mesh(spec(), 2, 2), {"a", "a", "b", "b"}, "hosts");
  expect_same_losses("hosts", "alone");
}

TEST_F(HybridRun, EightRanksThatAlsoDivideTheBatch) {
  train(library(), accumulated(spec(2, "0")), {}, "alone");
  train(library(), on_mesh(spec(2, "0"), 2, 2), one_host(8), "eight");
  expect_same_losses("eight", "alone");
}

/// Evaluations that gather weights layer by layer, and so never have the whole model, give the bits of those that put
/// it together first.
TEST_F(HybridRun, EvaluationsByLayerAreThoseOfTheWholeModel) {
  struct Case {
    int ranks;
    int64_t tensor, pipeline, zero;
  };
  for (const Case& mesh : {Case{2, 2, 1, 0}, Case{2, 1, 2, 0}, Case{4, 2, 2, 0}, Case{4, 2, 1, 3}, Case{4, 1, 2, 2},
                           Case{8, 2, 2, 1}, Case{3, 1, 3, 0}}) {
    spec::RunSpec run = spec(1);
    if (mesh.ranks == 3) run.model.options["layers"] = "3";
    run.ema.decay = mesh.zero > 0 ? 0.9 : 0;
    run.shard.zero = mesh.zero;
    run = on_mesh(run, mesh.tensor, mesh.pipeline);
    run.evaluation.batch = 16;  // the last of 70 samples are six: not all ranks have rows of them
    const std::string name = fmt::format("{}x{}-{}-of-{}", mesh.tensor, mesh.pipeline, mesh.zero, mesh.ranks);
    for (const std::string weights : {"once", "by_layer"}) {
      run.evaluation.weights = weights;
      train(library(), run, one_host(mesh.ranks), name + weights);
    }
    expect_same_bits(name + "by_layer", name + "once");
  }
}

/// One rank prepares the run first and decides for the others, so that preparing exchanges nothing.
TEST_F(HybridRun, ThePrecisionIsChosenByOneRankForAll) {
  for (const int64_t pipeline : {1, 2}) {
    spec::RunSpec run = on_mesh(spec(1), pipeline == 1 ? 2 : 1, pipeline);
    run.precision = "auto";
    EXPECT_TRUE(train(library(), run, one_host(2), fmt::format("auto{}", pipeline)).finished);
  }
}

TEST_F(HybridRun, AnyMeshGoesOnWithTheCheckpointOfAnother) {
  const spec::RunSpec run = spec(3, "0");
  train(library(), accumulated(run), {}, "whole");
  struct Case {
    int ranks;
    std::vector<std::string> changes;
  };
  int number = 0;
  for (const Case& next :
       {Case{4, {}}, Case{8, {}}, Case{2, {"mesh.tensor=1"}}, Case{2, {"mesh.pipeline=1"}},
        Case{2, {"mesh.tensor=1", "mesh.pipeline=1", "shard.zero=3"}}, Case{0, {"mesh.tensor=1", "mesh.pipeline=1"}}}) {
    const std::string name = fmt::format("cut{}", number++);
    on_ranks(one_host(4), [&](const RunOptions& given) {
      return start_run(library(), on_mesh(run, 2, 2), path(name), stopped_after(given, 7));
    });
    EXPECT_FALSE(fs::exists(path(name + "/summary.json")));
    EXPECT_TRUE(
        on_ranks(one_host(next.ranks),
                 [&](const RunOptions& options) { return resume_run(library(), path(name), 1, options, next.changes); })
            .finished)
        << name;
    expect_same_losses(name, "whole", 2e-5);
  }
}

TEST_F(HybridRun, ARunThatWasStoppedGoesOnWithTheSameBits) {
  const spec::RunSpec run = on_mesh(spec(2), 2, 2);
  train(library(), run, one_host(4), "whole");
  on_ranks(one_host(4),
           [&](const RunOptions& given) { return start_run(library(), run, path("cut"), stopped_after(given, 7)); });
  on_ranks(one_host(4), [&](const RunOptions& options) { return resume_run(library(), path("cut"), 1, options); });
  expect_same_bits("cut", "whole");
}

/// States that are shared along the data are those of ranks that keep them, to the last bit.
TEST_F(HybridRun, StatesOfPartsOfLayersSharedAlongTheData) {
  spec::RunSpec run = on_mesh(spec(2), 2, 1);
  train(library(), run, one_host(4), "kept");
  for (const int64_t zero : {1, 2, 3}) {
    run.shard.zero = zero;
    const std::string name = fmt::format("zero{}", zero);
    train(library(), run, one_host(4), name);
    expect_same_bits(name, "kept");
  }
  run.shard.zero = 3;
  train(library(), run, one_host(8), "eight");
  expect_same_losses("eight", "kept");
}

TEST_F(HybridRun, SharedStatesWithClippingAveragesAndSeveralBatches) {
  spec::RunSpec run = spec(2);
  run.clip.norm = 0.5;
  run.ema.decay = 0.9;
  run.lookahead.steps = 3;
  run.batch = 32;
  run.accumulate = 2;
  run = on_mesh(run, 2, 1);
  train(library(), run, one_host(4), "kept");
  for (const int64_t zero : {1, 2, 3}) {
    run.shard.zero = zero;
    const std::string name = fmt::format("zero{}", zero);
    train(library(), run, one_host(4), name);
    expect_same_losses(name, "kept", 1e-6);
  }
}

TEST_F(HybridRun, CheckpointsOfSharedStatesOfPartsAreReadByAnyMesh) {
  const spec::RunSpec run = spec(3, "0");
  spec::RunSpec alone = run;
  spec::resolve(alone);
  train(library(), alone, {}, "whole");
  struct Case {
    int ranks;
    std::vector<std::string> changes;
  };
  int number = 0;
  for (const int64_t zero : {1, 3})
    for (const Case& next : {Case{4, {}}, Case{2, {"mesh.tensor=1"}}, Case{4, {"mesh.tensor=4", "shard.zero=0"}},
                             Case{0, {"mesh.tensor=1"}}}) {
      const std::string name = fmt::format("cut{}", number++);
      on_ranks(one_host(4), [&](const RunOptions& given) {
        spec::RunSpec shared = on_mesh(run, 2, 1);
        shared.shard.zero = zero;
        return start_run(library(), shared, path(name), stopped_after(given, 7));
      });
      EXPECT_EQ(newest(name).manifest.parts.ranks, 4);
      EXPECT_TRUE(on_ranks(one_host(next.ranks),
                           [&](const RunOptions& options) {
                             return resume_run(library(), path(name), 1, options, next.changes);
                           })
                      .finished)
          << name;
      expect_same_losses(name, "whole", 2e-5);
    }
}

TEST_F(HybridRun, StatesOfStagesSharedAlongTheData) {
  train(library(), accumulated(spec(4, "0")), {}, "alone");
  spec::RunSpec run = on_mesh(spec(4, "0"), 1, 2);
  train(library(), run, one_host(4), "kept");
  for (const int64_t zero : {1, 2}) {
    run.shard.zero = zero;
    const std::string name = fmt::format("zero{}", zero);
    train(library(), run, one_host(4), name);
    expect_same_losses(name, "alone");
    if (zero == 1)
      expect_same_bits(name, "kept");
    else
      expect_same_losses(name, "kept", 1e-6);
  }
}

/// Norms travel between stages while states are scattered and gathered within them.
TEST_F(HybridRun, StatesOfStagesOfPartsSharedWithClippingAndAverages) {
  spec::RunSpec run = spec(2, "0");
  run.clip.norm = 0.5;
  run.ema.decay = 0.9;
  run = on_mesh(run, 2, 2);
  train(library(), run, one_host(8), "kept");
  for (const int64_t zero : {1, 2}) {
    run.shard.zero = zero;
    const std::string name = fmt::format("zero{}", zero);
    train(library(), run, one_host(8), name);
    expect_same_losses(name, "kept", 1e-6);
  }
}

TEST_F(HybridRun, CheckpointsOfSharedStatesOfStagesAreReadByAnyMesh) {
  const spec::RunSpec run = spec(3, "0");
  train(library(), accumulated(run), {}, "whole");
  struct Case {
    int ranks;
    std::vector<std::string> changes;
  };
  int number = 0;
  for (const int64_t zero : {1, 2})
    for (const Case& next : {Case{4, {}}, Case{8, {"mesh.tensor=2"}}, Case{4, {"mesh.pipeline=4"}},
                             Case{2, {"mesh.pipeline=1"}}, Case{0, {"mesh.pipeline=1"}}}) {
      const std::string name = fmt::format("cut{}", number++);
      on_ranks(one_host(4), [&](const RunOptions& given) {
        spec::RunSpec shared = on_mesh(run, 1, 2);
        shared.shard.zero = zero;
        return start_run(library(), shared, path(name), stopped_after(given, 7));
      });
      EXPECT_TRUE(on_ranks(one_host(next.ranks),
                           [&](const RunOptions& options) {
                             return resume_run(library(), path(name), 1, options, next.changes);
                           })
                      .finished)
          << name;
      expect_same_losses(name, "whole", 2e-5);
    }
}

TEST_F(HybridRun, ALostRankIsNamedByAllOthers) {
  constexpr int kLost = 5;
  const spec::RunSpec run = on_mesh(spec(50, "0"), 2, 2);
  comm::LocalGroup group(one_host(8));
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
      EXPECT_NE(errors[rank].find("rank 5 on host 'host'"), std::string::npos) << rank << ": " << errors[rank];
    }
}

}  // namespace
}  // namespace weft::run
