// Groups of ranks along the axes of a mesh: each exchanges among its own, beside the others, as a whole run would.
#include "weft/comm/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/comm/exchange.h"
#include "weft/comm/host_group.h"
#include "weft/comm/local/local_group.h"
#include "weft/graph/sharding.h"

namespace weft::comm {
namespace {

/// Six ranks: three parts of the data, two of each tensor.
const Mesh kMesh({{"data", 3}, {"tensor", 2}});

const std::vector<std::vector<std::string>> kPlacements = {{"a", "a", "a", "a", "a", "a"},
                                                           {"a", "a", "a", "b", "b", "b"},
                                                           {"a", "b", "a", "b", "a", "b"},
                                                           {"a", "b", "c", "d", "e", "f"}};

/// A rank's groups along both axes.
struct Axes {
  explicit Axes(Communicator& all)
      : data(all, kMesh.group_of(all.rank(), "data"), 0), tensor(all, kMesh.group_of(all.rank(), "tensor"), 1) {}
  Group data, tensor;
};

class Groups : public testing::TestWithParam<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(Placements, Groups, testing::ValuesIn(kPlacements));

TEST_P(Groups, TheirMembersAreThoseOfTheAxis) {
  run_ranks(GetParam(), [&](Communicator& all) {
    const Axes axes(all);
    EXPECT_EQ(axes.data.size(), 3);
    EXPECT_EQ(axes.tensor.size(), 2);
    EXPECT_EQ(axes.data.rank(), kMesh.coordinate(all.rank(), "data"));
    for (int rank = 0; rank < axes.data.size(); ++rank)
      EXPECT_EQ(axes.data.members()[static_cast<size_t>(rank)].host,
                GetParam()[static_cast<size_t>(kMesh.group_of(all.rank(), "data")[static_cast<size_t>(rank)])]);
    EXPECT_EQ(axes.data.members().front().host_index, 0);
  });
}

TEST_P(Groups, ReduceAlongBothAxesInTheMemoryOfAll) {
  run_ranks(GetParam(), [&](Communicator& all) {
    Axes axes(all);
    const auto data = std::make_shared<Collectives>(axes.data, CollectivesOptions{}),
               tensor = std::make_shared<Collectives>(axes.tensor, CollectivesOptions{});
    constexpr int64_t kElements = 20'000;
    const std::shared_ptr<std::byte> memory = allocate_for_groups(all, {data, tensor}, kElements * 4);
    auto* const values = reinterpret_cast<float*>(memory.get());
    std::fill_n(values, kElements, static_cast<float>(all.rank()));
    void* operand = values;
    data->reduce(data->prepare({.name = "sum", .elements = {kElements}}), std::span(&operand, 1));
    const std::vector<int> along_data = kMesh.group_of(all.rank(), "data");
    const auto of_data = static_cast<float>(std::accumulate(along_data.begin(), along_data.end(), 0));
    EXPECT_EQ(std::count(values, values + kElements, of_data), kElements);
    tensor->reduce(tensor->prepare({.name = "sum", .elements = {kElements}}), std::span(&operand, 1));
    EXPECT_EQ(std::count(values, values + kElements, 15.0f), kElements) << "0 to 5";
  });
}

TEST_P(Groups, FindTheMemoryOfAllInTheirOwn) {
  run_ranks(GetParam(), [&](Communicator& all) {
    Axes axes(all);
    const std::vector<int> on_host = all.ranks_of_own_host();
    const std::shared_ptr<SharedMemory> memory = all.share(64);
    const auto part_of = [&](int rank) {
      return memory->part(static_cast<int>(std::find(on_host.begin(), on_host.end(), rank) - on_host.begin()));
    };
    for (Group* const group : {&axes.data, &axes.tensor}) {
      HostGroup host(*group);
      host.add_memory(memory, 64, on_host);
      const Location location = host.locate(part_of(all.rank()) + 8, 16);
      EXPECT_EQ(location, (Location{0, 8}));
      for (int local = 0; local < host.size(); ++local)
        EXPECT_EQ(host.resolve(local, location), part_of(group->shown_rank(host.rank_of(local))) + 8);
    }
  });
}

/// Sums of what ranks of one group have; each tensor of 200 elements in parts of as many as there are ranks.
TEST_P(Groups, EachSumsGathersAndScattersAmongItsOwn) {
  run_ranks(GetParam(), [&](Communicator& all) {
    Axes axes(all);
    for (auto& [group, axis] : {std::pair<Group&, const char*>(axes.data, "data"), {axes.tensor, "tensor"}}) {
      const std::vector<int> ranks = kMesh.group_of(all.rank(), axis);
      const auto sum = static_cast<float>(std::accumulate(ranks.begin(), ranks.end(), 0));
      const auto count = static_cast<size_t>(group.size());
      constexpr int64_t kPart = 128;
      Collectives collectives(group, {});
      for (int turn = 0; turn < 3; ++turn) {
        std::vector<float> values(200, static_cast<float>(all.rank()));
        void* tensor = values.data();
        collectives.reduce(collectives.prepare({.name = "sum", .elements = {200}}), std::span(&tensor, 1));
        EXPECT_EQ(values, std::vector<float>(200, sum));

        std::vector<float> parts(count * kPart, -1);
        std::fill_n(parts.begin() + group.rank() * kPart, kPart, static_cast<float>(all.rank()));
        tensor = parts.data();
        collectives.reduce(
            collectives.prepare({.name = "gather", .elements = {kPart}, .kind = CollectiveKind::all_gather}),
            std::span(&tensor, 1));
        for (size_t rank = 0; rank < count; ++rank) EXPECT_EQ(parts[rank * kPart + 5], static_cast<float>(ranks[rank]));

        std::vector<float> whole(count * kPart, static_cast<float>(all.rank()));
        tensor = whole.data();
        collectives.reduce(
            collectives.prepare({.name = "scatter", .elements = {kPart}, .kind = CollectiveKind::reduce_scatter}),
            std::span(&tensor, 1));
        for (int64_t i = 0; i < kPart; ++i) EXPECT_EQ(whole[static_cast<size_t>(group.rank() * kPart + i)], sum);
      }
    }
  });
}

TEST_P(Groups, ExchangesOfBothAxesAndOfAllDoNotMeet) {
  run_ranks(GetParam(), [&](Communicator& all) {
    Axes axes(all);
    for (int turn = 0; turn < 20; ++turn) {
      double of_data = all.rank(), of_tensor = all.rank(), of_all = all.rank();
      all_reduce_sum(axes.tensor, {&of_tensor, 1}, "tensor");
      all_reduce_sum(axes.data, {&of_data, 1}, "data");
      all_reduce_sum(all, {&of_all, 1}, "all");
      EXPECT_EQ(of_all, 15);
      EXPECT_EQ(of_data, 6 + 3 * (all.rank() % 2));
      EXPECT_EQ(of_tensor, 1 + 4 * (all.rank() / 2));
    }
  });
}

TEST(Group, MessagesGoFromRankToRank) {
  run_ranks({"a", "a", "b", "b"}, [](Communicator& all) {
    if (all.rank() == 0 || all.rank() == 2) return;
    Group group(all, {3, 1}, 0);
    Collectives collectives(group, {});
    float value = static_cast<float>(all.rank());
    const bool sends = group.rank() == 0;
    const MessageId id = collectives.prepare(
        MessageSpec{.name = "activations", .bytes = sizeof value, .sends = sends, .peer = 1 - group.rank(), .tag = 7});
    collectives.start(id, &value);
    collectives.wait(id);
    EXPECT_EQ(value, 3);
  });
}

/// The even and the odd ranks reduce apart. Rank 3 is lost before; `before` runs on the others.
std::vector<std::string> errors_without_rank_3(const std::function<void(Communicator&)>& before) {
  LocalGroup all({"a", "a", "b", "b"});
  return errors_of_ranks(all, [&](Communicator& ranks) {
    const bool is_odd = ranks.rank() % 2 == 1;
    Group group(ranks, is_odd ? std::vector<int>{1, 3} : std::vector<int>{0, 2}, 0);
    if (ranks.rank() == 3) return all.silence(3);
    CollectivesOptions options;
    options.silence_seconds = 0.2;
    Collectives collectives(group, options);
    std::vector<float> values(1000, 1);
    void* tensor = values.data();
    before(ranks);
    collectives.reduce(collectives.prepare({.name = "fc.weight", .elements = {1000}}), std::span(&tensor, 1));
  });
}

TEST(Group, ALostRankIsNamedByItsNumberInTheRun) {
  const std::vector<std::string> errors = errors_without_rank_3([](Communicator&) {});
  EXPECT_EQ(errors[0], "") << "the other group does not wait for it";
  EXPECT_EQ(errors[2], "");
  EXPECT_NE(errors[1].find("'fc.weight'"), std::string::npos) << errors[1];
  EXPECT_NE(errors[1].find("rank 3 on host 'b'"), std::string::npos) << errors[1];
}

/// A rank of the run is lost: the other group waits for one of its own, which waits for the lost one elsewhere.
TEST(Group, ALostRankOfAnotherGroupIsNamed) {
  const std::vector<std::string> errors = errors_without_rank_3([](Communicator& ranks) {
    if (ranks.rank() != 2) return;
    while (ranks.seconds_silent(3) < 0.4) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  for (const size_t rank : {size_t{0}, size_t{1}})
    EXPECT_NE(errors[rank].find("rank 3 on host 'b'"), std::string::npos) << errors[rank];
}

}  // namespace
}  // namespace weft::comm
