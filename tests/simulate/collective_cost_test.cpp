// The costs of symmetric collectives beside the simulation of every message (comm/cost.h), and what they have to do on
// thousands of ranks.
#include "weft/simulate/collective_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "weft/comm/links/cost.h"

namespace weft::simulate {
namespace {

machines::ClusterFile boxes(int hosts, int devices, double host_gigabytes = 12) {
  machines::ClusterFile cluster;
  cluster.name = "boxes";
  cluster.hosts = hosts;
  cluster.devices_per_host = devices;
  cluster.in_host = {6e-6, 120e9, 0};
  cluster.between_hosts = {5e-6, host_gigabytes * 1e9, 0};
  cluster.summed_bytes_per_second = 300e9;
  return cluster;
}

double by_messages(comm::Algorithm algorithm, int size, int64_t elements, const comm::LinkCosts& link, int64_t chunk) {
  std::vector<comm::Schedule> schedules;
  for (int member = 0; member < size; ++member)
    schedules.push_back(comm::make_schedule(algorithm, member, size, elements, chunk));
  return comm::simulate(schedules, link, 1e15, 4);
}

double here(const std::string& algorithm, int size, int64_t elements, const machines::ClusterFile& cluster) {
  for (const CollectiveCost& cost :
       costs_of(Collective::all_reduce, 4.0 * static_cast<double>(elements), group_of_all(cluster, size), cluster))
    if (cost.algorithm == algorithm) return cost.seconds();
  ADD_FAILURE() << algorithm;
  return 0;
}

TEST(CollectiveCost, IsThatOfTheSchedulesMessageByMessage) {
  for (const int size : {2, 4, 8, 16, 32})
    for (const int64_t elements : {int64_t{1024}, int64_t{25'000'000}}) {
      SCOPED_TRACE(testing::Message() << size << " ranks, " << elements << " elements");
      machines::ClusterFile cluster = boxes(size, 1);
      cluster.summed_bytes_per_second = 1e15;
      const comm::LinkCosts& link = cluster.between_hosts;
      const double halving = by_messages(comm::Algorithm::halving_doubling, size, elements, link, 0);
      EXPECT_NEAR(here("halving-doubling", size, elements, cluster) / halving, 1, 0.05);
      const double ring = by_messages(comm::Algorithm::ring, size, elements, link, elements);
      EXPECT_NEAR(here("ring", size, elements, cluster) / ring, 1, 0.05);
      const double doubling = by_messages(comm::Algorithm::recursive_doubling, size, elements, link, 0);
      EXPECT_NEAR(here("doubling", size, elements, cluster) / doubling, 1, 0.05);
    }
}

TEST(CollectiveCost, IsThatOfMessagesOverHostsWithDevices) {
  // 4 hosts of 4: the hierarchical schedule, whose uplinks carry what all devices of a host send.
  const machines::ClusterFile cluster = boxes(4, 4);
  comm::Topology topology;
  for (int host = 0; host < 4; ++host) {
    comm::Topology::Group group;
    for (int device = 0; device < 4; ++device) group.hosts.push_back(4 * host + device);
    group.within = cluster.in_host;
    group.uplink_bytes_per_second = cluster.between_hosts.bytes_per_second;
    topology.groups.push_back(group);
  }
  constexpr int64_t kElements = 25'000'000;
  std::vector<comm::Schedule> schedules;
  for (int member = 0; member < 16; ++member)
    schedules.push_back(comm::make_hierarchical(member, 16, kElements, kElements, 4));
  const comm::Links links(16, cluster.between_hosts, topology);
  const double messages = comm::simulate(schedules, links, 1e15, 4);
  const CollectiveCost cost = cost_of(Collective::all_reduce, 4.0 * kElements, group_of_all(cluster, 16), cluster);
  EXPECT_TRUE(cost.algorithm.starts_with("hierarchical")) << cost.algorithm;
  // The same bytes pass the busiest link. Message by message a port waits for its turn on the uplink, which costs more.
  EXPECT_NEAR(cost.seconds() / comm::busiest_seconds(schedules, links, 4), 1, 0.01);
  EXPECT_GT(messages, cost.seconds());
  EXPECT_LT(messages, 1.6 * cost.seconds());
}

TEST(CollectiveCost, OfFewBytesGrowsAsTheLogarithmOfTheRanks) {
  const machines::ClusterFile cluster = boxes(4096, 1);
  const auto seconds = [&](int ranks) {
    return cost_of(Collective::all_reduce, 4096, group_of_all(cluster, ranks), cluster).seconds();
  };
  const double step = seconds(16) - seconds(8);
  for (int ranks = 8; ranks <= 4096; ranks *= 2) {
    const double logarithm = std::log2(ranks);
    EXPECT_NEAR(seconds(ranks), seconds(8) + (logarithm - 3) * step, 0.05 * seconds(ranks)) << ranks;
  }
  EXPECT_LT(seconds(4096), 4.5 * seconds(8));
}

TEST(CollectiveCost, OfManyBytesStaysNearTheBoundOfTheLink) {
  const machines::ClusterFile flat = boxes(4096, 1);
  for (int ranks = 8; ranks <= 4096; ranks *= 2) {
    const double bound = 2 * (ranks - 1.0) / ranks * 100e6 / flat.between_hosts.bytes_per_second;
    const double seconds = cost_of(Collective::all_reduce, 100e6, group_of_all(flat, ranks), flat).seconds();
    EXPECT_GE(seconds, bound * 0.9999) << ranks;
    EXPECT_LE(seconds, 1.1 * bound) << ranks;
  }
}

TEST(CollectiveCost, UplinksThatRacksShareSlowTheHosts) {
  machines::ClusterFile cluster = boxes(64, 8);
  const auto seconds = [&] {
    return cost_of(Collective::all_reduce, 100e6, group_of_all(cluster, 512), cluster).seconds();
  };
  const double full = seconds();
  cluster.levels.push_back({"rack", 16, 12e9 / 4, 0});  // 64:1
  // 2 x 3/4 of the bytes pass each of four uplinks, 2 x 63/64 each host's link.
  EXPECT_NEAR(seconds() / full, 4 * 0.75 / (63.0 / 64), 0.1);
}

TEST(CollectiveCost, GroupsOfAHostShareItsLink) {
  const machines::ClusterFile cluster = boxes(16, 8);
  const GroupShape alone{.size = 16, .per_host = 1, .groups_per_host = 1};
  GroupShape eight = alone;
  eight.groups_per_host = 8;
  EXPECT_NEAR(cost_of(Collective::reduce_scatter, 100e6, eight, cluster).seconds() /
                  cost_of(Collective::reduce_scatter, 100e6, alone, cluster).seconds(),
              8, 0.1);
}

TEST(CollectiveCost, OfOneRankIsNothing) {
  const machines::ClusterFile cluster = boxes(1, 1);
  EXPECT_EQ(cost_of(Collective::all_reduce, 1e9, group_of_all(cluster, 1), cluster).seconds(), 0);
}

}  // namespace
}  // namespace weft::simulate
