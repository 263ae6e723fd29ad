// cluster.toml: written, read, and refused where something is missing.
#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"
#include "weft/comm/local/local_group.h"
#include "weft/comm/measure/measure.h"
#include "weft/comm/measure/topology_file.h"

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

ClusterCosts of_two_switches() {
  const LinkCosts near{40e-6, 117e6, 2e-6}, slow{50e-6, 1e6, 9e-6};
  ClusterCosts costs;
  costs.between_hosts = {60e-6, 23.5e6, 2e-6};
  costs.topology.groups = {{{0, 2}, near, 24e6}, {{1, 3}, near, 25e6}, {{4}, {}, kUnlimited}};
  costs.topology.pairs = {{0, 4, slow}, {1, 4, slow}, {2, 3, {40e-6, 2e6, 9e-6}}};
  return costs;
}

TEST_F(ClusterFile, HoldsGroupsAndLinksThatAreUnlikeTheOthers) {
  LocalGroup group({"a", "b", "c", "d", "e"});
  const ClusterCosts costs = of_two_switches();
  const std::string text = cluster_text(group.communicator(0), costs);
  EXPECT_EQ(text, cluster_text(group.communicator(3), costs));
  EXPECT_NE(text.find("hosts = [\"a\", \"c\"]\nuplink_megabytes_per_second = 24\n"), std::string::npos) << text;
  EXPECT_NE(text.find("pairs = [[\"a\", \"e\"], [\"b\", \"e\"]]"), std::string::npos) << text;
  const ClusterCosts read = parse_cluster(text, "cluster.toml", group.communicator(1));
  ASSERT_EQ(read.topology.groups.size(), 3u);
  EXPECT_EQ(read.topology.groups[1].hosts, (std::vector<int>{1, 3}));
  EXPECT_NEAR(read.topology.groups[0].within->bytes_per_second, 117e6, 1);
  EXPECT_NEAR(read.topology.groups[1].uplink_bytes_per_second, 25e6, 1);
  EXPECT_EQ(read.topology.groups[2].uplink_bytes_per_second, kUnlimited);
  EXPECT_FALSE(read.topology.groups[2].within);
  ASSERT_EQ(read.topology.pairs.size(), 3u);
  EXPECT_EQ(cluster_text(group.communicator(0), read), text);
  EXPECT_TRUE(is_of_same_hosts(text, group.communicator(0)));
}

TEST_F(ClusterFile, IsForItsHostsByTheirNames) {
  LocalGroup measured({"a", "b", "c", "d", "e"}), fewer({"d", "c", "b"}), other({"a", "x"});
  const std::string text = cluster_text(measured.communicator(0), of_two_switches());
  const Topology topology = parse_cluster(text, "cluster.toml", fewer.communicator(0)).topology;
  ASSERT_EQ(topology.groups.size(), 2u);
  EXPECT_EQ(topology.groups[0].hosts, (std::vector<int>{1}));
  EXPECT_EQ(topology.groups[1].hosts, (std::vector<int>{0, 2}));
  ASSERT_EQ(topology.pairs.size(), 1u);
  EXPECT_EQ(topology.pairs[0].first, 0);
  EXPECT_EQ(topology.pairs[0].second, 1);
  expect_error([&] { parse_cluster(text, "cluster.toml", other.communicator(0)); }, ErrorKind::data,
               {"says nothing of host 'x'", "a, b, c, d, e", "weft cluster probe"});
  // Where it says nothing of any, links are equal.
  const std::string equal = cluster_text(measured.communicator(0), {});
  EXPECT_TRUE(parse_cluster(equal, "cluster.toml", other.communicator(0)).topology.is_empty());
}

TEST_F(ClusterFile, NumbersHostsOfTheSameName) {
  LocalGroup group({"a", "a", "b"});
  EXPECT_EQ(labels_of(std::vector<std::string>{"a", "b", "a"}), (std::vector<std::string>{"a#1", "b", "a#2"}));
  EXPECT_EQ(labels_of(group.communicator(0)), (std::vector<std::string>{"a", "b"}));
}

/// A file with [between_hosts] if wanted, what comes behind it, and hosts a, b and c.
std::string file_of_three(bool has_all, const std::string& links) {
  LocalGroup group({"a", "b", "c"});
  std::string text = cluster_text(group.communicator(0), {});
  const size_t begin = text.find("[between_hosts]"), end = text.find("# A message within a host");
  return text.substr(0, begin) + (has_all ? text.substr(begin, end - begin) : "") + links + "\n" + text.substr(end);
}

TEST_F(ClusterFile, NamesWhatIsWrongWithGroupsAndLinks) {
  const std::string costs = "latency_us = 30\nmessage_us = 2\nmegabytes_per_second = 100\n";
  const auto expect = [&](const std::string& links, const std::vector<std::string>& texts, bool has_all = true) {
    expect_error([&] { parse_cluster(file_of_three(has_all, links), "cluster.toml"); }, ErrorKind::data, texts);
  };
  expect("[[groups]]\nhosts = [\"a\", \"x\"]\n", {"groups[0].hosts", "'x'", "a, b, c"});
  expect("[[groups]]\nhosts = [\"a\", \"b\"]\n[[groups]]\nhosts = [\"b\", \"c\"]\n", {"'b'", "two of [[groups]]"});
  expect("[[groups]]\nhosts = [\"a\", \"b\"]\n", {"'c'", "none of [[groups]]"});
  expect("[[groups]]\nhosts = \"a\"\n", {"groups[0].hosts", "list"});
  expect("[groups]\nhosts = [\"a\"]\n", {"[[groups]]"});
  expect("[[groups]]\nhosts = [\"a\", \"b\", \"c\"]\nuplink_megabytes_per_second = 0\n",
         {"groups[0].uplink_megabytes_per_second", "above 0"});
  expect("[[groups]]\nhosts = [\"a\", \"b\", \"c\"]\nlatency_us = 3\n", {"groups[0].megabytes_per_second"});
  expect("[[links]]\n" + costs + "pairs = [[\"a\", \"b\"], [\"b\", \"a\"]]\n",
         {"'a' and 'b'", "twice", "same in both directions"});
  expect("[[links]]\n" + costs + "pairs = [[\"a\", \"a\"]]\n", {"'a' to itself"});
  expect("[[links]]\n" + costs + "pairs = [\"a\", \"b\"]\n", {"links[0].pairs", "[\"a\", \"b\"]"});
  expect("[[links]]\n" + costs, {"links[0].pairs"});
  expect("[[links]]\nlatency_us = -1\nmessage_us = 2\nmegabytes_per_second = 100\npairs = []\n",
         {"links[0].latency_us", "0 or above"});
  expect("[[links]]\n" + costs + "pairs = [[\"a\", \"b\"], [\"b\", \"c\"]]\n", {"no link between 'a' and 'c'"}, false);
}

TEST_F(ClusterFile, MayGiveEachPairInPlaceOfAll) {
  const std::string text = file_of_three(false,
                                         "[[links]]\nlatency_us = 30\nmessage_us = 2\nmegabytes_per_second = 100\n"
                                         "pairs = [[\"a\", \"b\"], [\"c\", \"b\"], [\"c\", \"a\"]]\n");
  const ClusterCosts costs = parse_cluster(text, "cluster.toml");
  EXPECT_EQ(costs.topology.pairs.size(), 3u);
  EXPECT_EQ(Links(3, costs.between_hosts, costs.topology).slowest().bytes_per_second, 100e6);
}

TEST_F(ClusterFile, OfBeforeLinksWereMeasuredByPairIsReadAsEqualLinks) {
  const ClusterCosts costs = parse_cluster(
      "[between_hosts]\nlatency_us = 30\nmessage_us = 2\nmegabytes_per_second = 100\n\n[in_host]\nlatency_us = 1\n"
      "message_us = 1\nmegabytes_per_second = 9000\n\n[memory]\nshared_megabytes_per_second = 9000\n"
      "summed_megabytes_per_second = 9000\n\n[[hosts]]\nname = \"a\"\nranks = 1\n",
      "cluster.toml");
  EXPECT_TRUE(costs.topology.is_empty());
  EXPECT_TRUE(Links(5, costs.between_hosts, costs.topology).are_equal());
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

TEST(MeasureCluster, MeasuresEachPairOfSeveralHosts) {
  std::vector<ClusterCosts> costs(5);
  run_ranks({"a", "b", "c", "d", "e"},
            [&](Communicator& ranks) { costs[static_cast<size_t>(ranks.rank())] = measure_cluster(ranks); });
  for (const ClusterCosts& one : costs) EXPECT_EQ(one, costs[0]);
  const LinkCosts slowest = Links(5, costs[0].between_hosts, costs[0].topology).slowest();
  EXPECT_GT(slowest.bytes_per_second, 1e5);
  EXPECT_LT(slowest.bytes_per_second, 1e13);
  EXPECT_GT(slowest.latency_seconds, 1e-9);
}

}  // namespace
}  // namespace weft::comm
