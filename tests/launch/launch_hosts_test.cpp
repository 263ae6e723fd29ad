// Hosts with their slots as users and Slurm write them, and which of them take the ranks of a run.
#include "weft/launch/launch_hosts.h"

#include <gmock/gmock.h>

#include "weft/base/error.h"
#include "weft/base/host_name.h"
#include "weft/launch/slurm_job.h"

namespace weft::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LaunchHosts, AreReadAndPlaced) {
  const std::vector<HostSlots> hosts = parse_hosts("a:2,b,c:3,b");
  EXPECT_THAT(hosts, ElementsAre(HostSlots{"a", 2}, HostSlots{"b", 2}, HostSlots{"c", 3}));
  EXPECT_EQ(count_slots(hosts), 7);
  EXPECT_EQ(print_hosts(place_ranks(hosts, 3)), "a:2,b:1");
  EXPECT_EQ(print_hosts(place_ranks(hosts, 9)), "a:3,b:3,c:3");
  EXPECT_EQ(host_of_rank(hosts, 1), "a");
  EXPECT_EQ(host_of_rank(hosts, 4), "c");
  EXPECT_EQ(host_of_rank(hosts, 7), "");
  EXPECT_EQ(print_hosts(without_slot(parse_hosts("a:2,b"), "b")), "a:2");
  EXPECT_EQ(print_hosts(without_slot(parse_hosts("a:2,b"), "a")), "a:1,b:1");
}

TEST(LaunchHosts, WhatIsNoneIsNamed) {
  for (const char* text : {"a:0", "a:2,:3", "a:b", "a:-1", "a b"}) {
    try {
      parse_hosts(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("is no host with a number of ranks; write node1:2,node2:2"));
    }
  }
}

TEST(LaunchHosts, ThisHostIsKnown) {
  EXPECT_TRUE(has_ranks_here({}));
  EXPECT_TRUE(has_ranks_here(parse_hosts("a.elsewhere:2,localhost:2")));
  EXPECT_TRUE(has_ranks_here({{host_name(), 1}}));
  EXPECT_FALSE(has_ranks_here(parse_hosts("a.elsewhere:2,b.elsewhere:2")));
}

TEST(LaunchHosts, SlurmCounts) {
  EXPECT_THAT(parse_slurm_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(parse_slurm_counts("4"), ElementsAre(4));
  EXPECT_THROW(parse_slurm_counts("2(x"), Error);
  EXPECT_THROW(parse_slurm_counts("two"), Error);
}

std::string placed(const std::string& hosts, int most, const RankNeeds& needs) {
  const PlacedRanks ranks = usable_ranks(parse_hosts(hosts), most, needs);
  EXPECT_EQ(count_slots(ranks.hosts), ranks.count);
  return print_hosts(ranks.hosts);
}

TEST(UsableRanks, VirtualRanksFindAsManyOnEachHost) {
  const RankNeeds eight{.divided = {64, 8}, .as_many_on_each = true};
  EXPECT_EQ(placed("a:4,b:4", 8, eight), "a:4,b:4");
  EXPECT_EQ(placed("a:3,b:4", 7, eight), "b:4");  // a host is left out
  EXPECT_EQ(placed("a:3,b:3", 6, eight), "a:2,b:2");
  EXPECT_EQ(placed("a:3,b:4,c:4", 8, eight), "b:4,c:4");
  EXPECT_EQ(placed("a:2,b:3,c:2,d:3", 10, eight), "a:2,b:2,c:2,d:2");
  EXPECT_EQ(placed("a:1,b:3,c:2", 6, eight), "b:2,c:2");
  EXPECT_EQ(placed("a:1,b:1,c:1", 3, eight), "a:1,b:1");
  EXPECT_EQ(placed("a:8,b:8", 16, eight), "a:8");  // no more than there are virtual ranks
  EXPECT_EQ(placed("a:1", 1, eight), "a:1");
}

TEST(UsableRanks, BatchesAreDivided) {
  EXPECT_EQ(placed("a:3,b:4", 7, {.divided = {4, 8}, .as_many_on_each = true}), "b:4");
  EXPECT_EQ(placed("a:3,b:4", 7, {.divided = {4, 2}, .as_many_on_each = true}), "a:2");
  EXPECT_EQ(placed("a:3,b:4", 7, {.divided = {64, 96}}), "a:3,b:1");
  EXPECT_EQ(placed("a:3,b:4", 6, {.divided = {96}}), "a:3,b:3");
}

TEST(UsableRanks, WithoutVirtualRanksHostsAreFilled) {
  EXPECT_EQ(placed("a:3,b:4", 7, {}), "a:3,b:4");
  EXPECT_EQ(placed("a:3,b:4", 4, {}), "a:3,b:1");
}

TEST(UsableRanks, ThisHostTakesAnyNumber) {
  EXPECT_EQ(usable_ranks({}, 7, {.divided = {8}, .as_many_on_each = true}).count, 4);
  EXPECT_EQ(usable_ranks({}, 7, {.divided = {96}}).count, 6);
  EXPECT_THAT(usable_ranks({}, 7, {}).hosts, ElementsAre());
}

TEST(UsableRanks, ACopyOfTheModelKeepsItsRanks) {
  const RankNeeds shared{.divided = {48}, .tensor = 2};
  EXPECT_EQ(usable_ranks({}, 4, shared).count, 4);
  const PlacedRanks three = usable_ranks({}, 3, shared);
  EXPECT_EQ(three.count, 2);
  EXPECT_EQ(three.tensor, 2);
  const RankNeeds stages{.divided = {48, 12}, .tensor = 2, .pipeline = 2};
  EXPECT_EQ(usable_ranks({}, 15, stages).count, 12);
  EXPECT_EQ(usable_ranks({}, 23, {.divided = {4}, .pipeline = 4}).count, 16);  // of 5 copies 4 divide the batch
}

TEST(UsableRanks, WhereTooFewAreLeftForOneCopyItTakesFewerRanks) {
  const auto mesh = [](int most, const RankNeeds& needs) {
    const PlacedRanks placed = usable_ranks({}, most, needs);
    return std::vector<int>{placed.count, placed.tensor, placed.pipeline};
  };
  EXPECT_THAT(mesh(1, {.divided = {48}, .tensor = 2}), ElementsAre(1, 1, 1));
  EXPECT_THAT(mesh(3, {.divided = {48}, .tensor = 4}), ElementsAre(2, 2, 1));  // as little more memory as can be
  EXPECT_THAT(mesh(3, {.divided = {8}, .pipeline = 4}), ElementsAre(2, 1, 2));
  EXPECT_THAT(mesh(3, {.divided = {8}, .tensor = 2, .pipeline = 2}), ElementsAre(2, 2, 1));
}

TEST(UsableRanks, NoneWhereThereIsNoRoom) {
  EXPECT_EQ(usable_ranks({}, 0, {}).count, 0);
  EXPECT_EQ(usable_ranks({}, -1, {.divided = {8}, .as_many_on_each = true}).count, 0);
}

}  // namespace
}  // namespace weft::launch
