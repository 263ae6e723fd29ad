// What ranks do alike: errors of one are those of all, and name it.
#include "weft/comm/on_all_ranks.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/comm/local/local_group.h"
#include "weft/program/same_run.h"
#include "weft/program/shared_state.h"

namespace weft::comm {
namespace {

using comm::Communicator;

/// What `body` throws on each rank, after the letter for a SharedError.
std::vector<std::string> thrown_by(const std::vector<std::string>& hosts,
                                   const std::function<void(Communicator&)>& body) {
  std::vector<std::string> messages(hosts.size());
  comm::run_ranks(hosts, [&](Communicator& ranks) {
    std::string& message = messages[static_cast<size_t>(ranks.rank())];
    try {
      body(ranks);
    } catch (const SharedError& error) {
      message = error.what();
    }
  });
  return messages;
}

TEST(Together, AnErrorOfOneRankIsThrownByAllAndNamesIt) {
  const std::string wanted = "rank 2 on host 'b': cannot read 'images'";
  EXPECT_EQ(thrown_by({"a", "a", "b"},
                      [](Communicator& ranks) {
                        on_all_ranks(&ranks, "data", [&] {
                          if (ranks.rank() == 2) fail(ErrorKind::io, "cannot read 'images'");
                        });
                      }),
            std::vector<std::string>(3, wanted));
}

TEST(Together, AnErrorOfAllNamesNobody) {
  EXPECT_EQ(thrown_by({"a", "b"},
                      [](Communicator& ranks) {
                        on_all_ranks(&ranks, "recipe", [] { fail(ErrorKind::usage, "batch = 0 is out of range"); });
                      }),
            std::vector<std::string>(2, "batch = 0 is out of range"));
}

TEST(Together, KeepsTheKindOfTheError) {
  comm::run_ranks({"a", "b"}, [](Communicator& ranks) {
    try {
      on_all_ranks(&ranks, "recipe", [&] {
        if (ranks.rank() == 1) fail(ErrorKind::usage, "no");
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const SharedError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(error.exit_code(), 2);
    }
  });
}

TEST(Together, GoesOnWhereNobodyFails) {
  comm::run_ranks({"a", "b"}, [](Communicator& ranks) { on_all_ranks(&ranks, "recipe", [] {}); });
  int calls = 0;
  on_all_ranks(nullptr, "recipe", [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(DecidedByFirst, GivesAllItsText) {
  comm::run_ranks({"a", "b", "c"}, [](Communicator& ranks) {
    const std::string text =
        decided_by_first(&ranks, "precision", [&] { return "rank " + std::to_string(ranks.rank()); });
    EXPECT_EQ(text, "rank 0");
  });
}

TEST(DecidedByFirst, ItsErrorIsThatOfAll) {
  EXPECT_EQ(thrown_by({"a", "b"},
                      [](Communicator& ranks) {
                        decided_by_first(&ranks, "checkpoint",
                                         [&]() -> std::string { fail(ErrorKind::data, "the checkpoint is damaged"); });
                      }),
            std::vector<std::string>(2, "the checkpoint is damaged"));
}

TEST(RequireSame, NamesTheFirstRankThatDiffersAndHow) {
  const auto compare = [](Communicator& ranks) {
    const bool other = ranks.rank() >= 2;
    program::require_same(
        &ranks, {{"the version of weft", "0.1.0", "start the same program"},
                 {"the number of samples", other ? "59999" : "60000", "give all hosts the same files", "here"},
                 {"the plan", std::to_string(ranks.rank()), "take the same processors"}});
  };
  EXPECT_EQ(thrown_by({"a", "a", "b", "b"}, compare),
            std::vector<std::string>(4,
                                     "the number of samples is 59999 (here) on rank 2 on host 'b', but 60000 (here) on "
                                     "rank 0; give all hosts the same files"));
}

TEST(RequireSame, DetailsAreNotCompared) {
  comm::run_ranks({"a", "b"}, [](Communicator& ranks) {
    program::require_same(&ranks, {{"the plan", "cafe", "", std::to_string(ranks.rank())}});
  });
}

State state_of(float first) {
  State state;
  Tensor weight(DType::f32, Shape{2, 3}), count(DType::i64, Shape{1});
  for (int64_t at = 0; at < 6; ++at) weight.data_as<float>()[at] = first + static_cast<float>(at);
  count.data_as<int64_t>()[0] = 7;
  state.set("weight", std::move(weight));
  state.set("count", std::move(count));
  return state;
}

TEST(SharedState, OthersTakeOverTheFirstOnes) {
  comm::run_ranks({"a", "b", "c"}, [](Communicator& ranks) {
    State state = ranks.rank() == 0 ? state_of(4) : State();
    if (ranks.rank() == 2) state.set("leftover", Tensor(DType::f32, Shape{1}));
    program::take_first_state(&ranks, state);
    EXPECT_EQ(program::fingerprint_of(state), program::fingerprint_of(state_of(4)));
    EXPECT_EQ(state.names(), (std::vector<std::string>{"count", "weight"}));
  });
}

TEST(SharedState, FingerprintsTellNumbersAndShapesApart) {
  EXPECT_EQ(program::fingerprint_of(state_of(1)), program::fingerprint_of(state_of(1)));
  EXPECT_NE(program::fingerprint_of(state_of(1)), program::fingerprint_of(state_of(2)));
  State reshaped;
  reshaped.set("weight", Tensor(DType::f32, Shape{3, 2}));
  State plain;
  plain.set("weight", Tensor(DType::f32, Shape{2, 3}));
  EXPECT_NE(program::fingerprint_of(reshaped), program::fingerprint_of(plain));
}

}  // namespace
}  // namespace weft::comm
