#include "weft/comm/host_share.h"

#include <gtest/gtest.h>

#include "weft/base/cores.h"
#include "weft/comm/local/local_group.h"

namespace weft::comm {
namespace {

using Cores = std::vector<int>;

TEST(HostShare, RanksDivideTheCoresOfTheirHost) {
  const Cores cores{0, 1, 2, 3, 8, 9, 10};
  EXPECT_EQ(cores_of_rank(cores, 0, 2), (Cores{0, 1, 2, 3}));
  EXPECT_EQ(cores_of_rank(cores, 1, 2), (Cores{8, 9, 10}));
  EXPECT_EQ(cores_of_rank(cores, 0, 1), cores);
}

TEST(HostShare, MoreRanksThanCoresShareThem) {
  const Cores cores{4, 5};
  EXPECT_EQ(cores_of_rank(cores, 0, 3), Cores{4});
  EXPECT_EQ(cores_of_rank(cores, 1, 3), Cores{5});
  EXPECT_EQ(cores_of_rank(cores, 2, 3), Cores{4});
}

TEST(HostShare, RanksThatMayUseTheSameCoresDivideThem) {
  const Cores all{0, 1, 2, 3};
  const Placing placing{.cores = {all, all}, .launcher_cores = all};
  EXPECT_EQ(choose_cores(placing, 0), (Cores{0, 1}));
  EXPECT_EQ(choose_cores(placing, 1), (Cores{2, 3}));
}

TEST(HostShare, CoresThatALauncherHasGivenEachStay) {
  const Placing placing{.cores = {{0, 1, 2}, {3}}, .launcher_cores = {0, 1, 2, 3, 4, 5}};
  EXPECT_EQ(choose_cores(placing, 0), (Cores{0, 1, 2}));
  EXPECT_EQ(choose_cores(placing, 1), Cores{3});
}

TEST(HostShare, OneCoreEachByDefaultBecomesAPartOfAll) {
  const Placing placing{.cores = {{0}, {1}}, .launcher_cores = {0, 1, 2, 3, 4, 5}, .bound_by_default = true};
  EXPECT_EQ(choose_cores(placing, 0), (Cores{0, 1, 2}));
  EXPECT_EQ(choose_cores(placing, 1), (Cores{3, 4, 5}));
}

TEST(HostShare, ALauncherElsewhereDecidesNothing) {
  const Placing placing{.cores = {{4}, {5}}, .launcher_cores = {0, 1}, .bound_by_default = true};
  EXPECT_EQ(choose_cores(placing, 0), Cores{4}) << "the parent is no launcher of this host";
}

TEST(HostShare, CoresThatRanksShareCountOnce) {
  comm::run_ranks({"a", "a", "b"},
                  [](comm::Communicator& ranks) { EXPECT_EQ(cores_of_host(&ranks), available_cores()); });
  EXPECT_EQ(cores_of_host(nullptr), available_cores());
}

TEST(HostShare, AllUseAsManyThreadsAsTheLeastHas) {
  comm::run_ranks({"a", "b"},
                  [](comm::Communicator& ranks) { EXPECT_EQ(common_threads(&ranks, ranks.rank() == 0 ? 8 : 6), 6); });
  EXPECT_EQ(common_threads(nullptr, 8), 8);
}

}  // namespace
}  // namespace weft::comm
