// cluster.toml: written, read, and refused where something is missing.
#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"
#include "weft/comm/local/local_group.h"
#include "weft/comm/measure.h"

namespace weft::comm {
namespace {

class ClusterFile : public FilesTest {};

TEST_F(ClusterFile, HoldsWhatWasMeasured) {
  LocalGroup group({"left", "right", "right"});
  const ClusterCosts costs{.between_hosts = {25e-6, 1.25e9, 2e-6},
                           .in_host = {0.5e-6, 8e9, 0.2e-6},
                           .summed_bytes_per_second = 9e9,
                           .shared_bytes_per_second = 7e9,
                           .native = {.seconds = {20e-6, 30e-6, 70e-6}, .own_seconds = {21e-6, 30e-6, 60e-6}}};
  const std::string text = cluster_text(group.communicator(0), costs);
  EXPECT_NE(text.find("name = \"right\"\nranks = 2"), std::string::npos) << text;
  write_atomically(path("cluster.toml"), text);
  const ClusterCosts read = read_cluster_file(path("cluster.toml"));
  EXPECT_NEAR(read.between_hosts.latency_seconds, 25e-6, 1e-12);
  EXPECT_NEAR(read.between_hosts.bytes_per_second, 1.25e9, 1);
  EXPECT_NEAR(read.between_hosts.message_seconds, 2e-6, 1e-12);
  EXPECT_NEAR(read.in_host.latency_seconds, 0.5e-6, 1e-12);
  EXPECT_NEAR(read.summed_bytes_per_second, 9e9, 1);
  EXPECT_NEAR(read.shared_bytes_per_second, 7e9, 1);
  for (size_t size = 0; size < costs.native.seconds.size(); ++size) {
    EXPECT_NEAR(read.native.seconds[size], costs.native.seconds[size], 1e-9);
    EXPECT_NEAR(read.native.own_seconds[size], costs.native.own_seconds[size], 1e-9);
  }
}

TEST_F(ClusterFile, HoldsWhatIsTooShortToMeasure) {
  LocalGroup group({"left", "right"});
  for (const double seconds : {0.0, 1e-11}) {
    const ClusterCosts costs{.between_hosts = {seconds, 1.25e13, seconds},
                             .native = {.seconds = {1e-9}, .own_seconds = {1e-9}}};
    const ClusterCosts read = parse_cluster(cluster_text(group.communicator(0), costs), "cluster.toml");
    EXPECT_NEAR(read.between_hosts.latency_seconds, seconds, 1e-14);
    EXPECT_NEAR(read.between_hosts.message_seconds, seconds, 1e-14);
    EXPECT_NEAR(read.between_hosts.bytes_per_second, 1.25e13, 1e8);
    EXPECT_NEAR(read.native.seconds[0], 1e-9, 1e-12);
  }
}

TEST_F(ClusterFile, TellsWhetherHostsAndTheirRanksAreTheSame) {
  LocalGroup two({"a", "a", "b", "b"}), other({"a", "a", "c", "c"}), fewer({"b", "b"}), uneven({"a", "a", "b"});
  const std::string text = cluster_text(two.communicator(0), {});
  EXPECT_TRUE(is_of_same_hosts(text, two.communicator(1)));
  for (LocalGroup* group : {&other, &fewer, &uneven}) EXPECT_FALSE(is_of_same_hosts(text, group->communicator(0)));
  EXPECT_FALSE(is_of_same_hosts("", two.communicator(0)));
}

TEST_F(ClusterFile, HasNothingOfMpisOwnAllReduceWhereItWasNotMeasured) {
  LocalGroup group({"left", "right"});
  const std::string text = cluster_text(group.communicator(0), {});
  EXPECT_EQ(text.find("[mpi]"), std::string::npos) << text;
  write_atomically(path("cluster.toml"), text);
  EXPECT_EQ(read_cluster_file(path("cluster.toml")).native, NativeCosts{});
  const auto expect = [&](const std::string& lists, const std::vector<std::string>& parts) {
    expect_error([&] { parse_cluster(text + "\n[mpi]\n" + lists, "cluster.toml"); }, ErrorKind::data, parts);
  };
  expect("all_reduce_us = [3, -1]", {"mpi.all_reduce_us", "above 0"});
  expect("all_reduce_us = [3, 1]", {"mpi.weft_us", "list"});
  expect("all_reduce_us = [3, 1]\nweft_us = [3]", {"mpi.all_reduce_us", "mpi.weft_us", "2 and 1"});
}

TEST_F(ClusterFile, NamesTheKeyThatIsMissing) {
  write_atomically(path("cluster.toml"), "[between_hosts]\nlatency_us = 30\nmegabytes_per_second = 0\n");
  expect_error([&] { read_cluster_file(path("cluster.toml")); }, ErrorKind::data,
               {"between_hosts.megabytes_per_second", "above 0", "weft cluster probe"});
}

TEST_F(ClusterFile, NamesTheLineThatIsNoToml) {
  write_atomically(path("cluster.toml"), "[between_hosts]\nlatency_us 30\n");
  expect_error([&] { read_cluster_file(path("cluster.toml")); }, ErrorKind::data, {"cluster.toml", "line 2"});
}

TEST(MeasureCluster, GivesAllRanksTheSame) {
  std::vector<ClusterCosts> costs(3);
  run_ranks({"left", "left", "right"},
            [&](Communicator& ranks) { costs[static_cast<size_t>(ranks.rank())] = measure_cluster(ranks); });
  EXPECT_EQ(costs[0], costs[1]);
  EXPECT_EQ(costs[0], costs[2]);
  EXPECT_GT(costs[0].between_hosts.bytes_per_second, 1e6);
  EXPECT_GT(costs[0].between_hosts.latency_seconds, 1e-9);
  EXPECT_GT(costs[0].shared_bytes_per_second, 1e7);
}

}  // namespace
}  // namespace weft::comm
