// Whole runs of two ranks on a device with memory of its own reach the bits of the CPU: nodes carry what ranks exchange
// between the two memories, and nobody reads the arena from the host. The device is handed to training by the library.
#include <gtest/gtest.h>

#include "tests/support/checked_host.h"
#include "tests/support/ranks_rig.h"
#include "weft/base/files.h"
#include "weft/comm/measure/measure.h"

namespace weft {
namespace {

class CheckedRanks : public RanksTest {
 protected:
  static Library on_checked_host(Library library) {
    library.device.make = [](DeviceRequest request) -> std::unique_ptr<Device> {
      return std::make_unique<CheckedHost>(request.threads, std::move(request.kernels));
    };
    return library;
  }
  static spec::RunSpec spec(const std::string& model, int64_t batch = 64) {
    spec::RunSpec spec = drawn_spec(model, 1, batch, 0.01);
    spec.optimizer.name = "adamw";
    spec.clip.norm = 1;
    return spec;
  }
  void expect_same_as_on_cpu(spec::RunSpec spec, const Hosts& hosts) const {
    spec::resolve(spec);
    train(cpu_, spec, hosts, "cpu");
    train(checked_, spec, hosts, "checked");
    expect_same_bits("checked", "cpu");
  }
  std::string graph_of(const std::string& run) const { return read_text(path(run + "/graph.weft")); }
  std::string plan_of(const std::string& run) const { return read_text(path(run + "/plan.json")); }

  const Library cpu_ = drawn_library(drawn_images(), 320, 70), checked_ = on_checked_host(cpu_);
};

TEST_F(CheckedRanks, AloneARunReachesTheSameBits) { expect_same_as_on_cpu(spec("lenet5"), {}); }

TEST_F(CheckedRanks, GradientsAreReducedOverTwoRanks) {
  expect_same_as_on_cpu(spec("lenet5"), one_host(2));
  const std::string graph = graph_of("checked");
  EXPECT_NE(graph.find("all_reduce_start("), std::string::npos);
  EXPECT_NE(graph.find("copy_to_host("), std::string::npos);
  EXPECT_EQ(graph_of("cpu").find("copy_to_host("), std::string::npos);
}

TEST_F(CheckedRanks, StatisticsOfAllRanksAreReducedInTheForwardPart) {
  spec::RunSpec run = spec("resnet9");
  run.batch_norm = "synchronised";
  expect_same_as_on_cpu(run, one_host(2));
}

TEST_F(CheckedRanks, RanksThatTrainApartGoOnWithTheMeanOfTheirWeights) {
  spec::RunSpec run = spec("lenet5");
  run.clip.norm = 0;
  run.averaging.period = 2;
  expect_same_as_on_cpu(run, one_host(2));
}

TEST_F(CheckedRanks, ShardsAreSummedOverTwoRanks) {
  spec::RunSpec run = spec("lenet5");
  run.virtual_ranks = 4;
  expect_same_as_on_cpu(run, one_host(2));
}

TEST_F(CheckedRanks, BatchesAreSummedBeforeTheRanksExchange) {
  spec::RunSpec run = spec("lenet5", 32);
  run.accumulate = 2;
  expect_same_as_on_cpu(run, one_host(2));
}

TEST_F(CheckedRanks, UpdatesThatTheNextStepDoesFindWhatTheyWaitFor) {
  spec::RunSpec run = spec("resnet9");
  run.clip.norm = 0;
  run.cluster = path("slow.toml");
  comm::LocalGroup group({"a", "b"});
  comm::ClusterCosts costs;
  costs.between_hosts.bytes_per_second = 1e6;
  write_atomically(run.cluster, comm::cluster_text(group.communicator(0), costs));
  expect_same_as_on_cpu(run, {"a", "b"});
  EXPECT_NE(plan_of("checked").find("deferred_before"), std::string::npos);
}

TEST_F(CheckedRanks, ARunThatWasStoppedGoesOnToTheSameBits) {
  spec::RunSpec run = spec("lenet5");
  run.epochs = 2;
  spec::resolve(run);
  train(cpu_, run, one_host(2), "cpu");
  on_ranks(one_host(2), [&](const run::RunOptions& options) {
    return run::start_run(checked_, run, path("checked"), stopped_after(options, 3));
  });
  on_ranks(one_host(2),
           [&](const run::RunOptions& options) { return run::resume_run(checked_, path("checked"), 1, options); });
  expect_same_bits("checked", "cpu");
}

}  // namespace
}  // namespace weft
