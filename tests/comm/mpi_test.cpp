// The communicator over MPI. A test whose name begins with Ranks runs itself again under mpirun, once per rank; the
// bodies, InMpi.*, are skipped elsewhere.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/collectives.h"
#include "weft/comm/exchange.h"
#include "weft/comm/mpi/launcher.h"
#include "weft/comm/mpi/session.h"
#include "weft/comm/tags.h"

namespace weft::comm {
namespace {

/// Of ranks that wait for one that is lost: 5 s, and what a busy machine takes to start and end them.
constexpr double kBoundSeconds = 45;
constexpr int kHangSeconds = 60;

struct Outcome {
  int exit_code = 0;
  std::string output;
  double seconds = 0;
};

Outcome mpirun(int ranks, const std::string& test, const std::string& environment = "") {
  std::array<char, 4096> self{};
  if (readlink("/proc/self/exe", self.data(), self.size() - 1) < 0) return {1, "no /proc", 0};
  // MPI keeps memory until it ends and locks in ways that sanitizers dislike; of weft, ranks as threads are checked.
  const std::string command = fmt::format(
      "env ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=report_bugs=0 OMPI_ALLOW_RUN_AS_ROOT=1 "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_rmaps_base_oversubscribe=1 "
      "OMPI_MCA_plm_rsh_agent=/bin/false {} timeout -k 5 {} mpirun -n {} {} --gtest_color=no --gtest_filter=InMpi.{} "
      "2>&1",
      environment, kHangSeconds, ranks, self.data(), test);
  const auto begin = std::chrono::steady_clock::now();
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer{};
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), got);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

void expect_all_pass(const Outcome& outcome, int ranks) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  int passed = 0;
  for (size_t at = 0; (at = outcome.output.find("[  PASSED  ] 1 test", at)) != std::string::npos; ++at) ++passed;
  EXPECT_EQ(passed, ranks) << outcome.output;
}

class InMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (!started_by_launcher()) GTEST_SKIP() << "runs under mpirun, by the tests Ranks.*";
  }
};

TEST_F(InMpi, Exchange) {
  MpiSession session;
  Communicator& ranks = session.communicator();
  double sum = ranks.rank() + 1;
  all_reduce_sum(ranks, std::span(&sum, 1), "sum");
  EXPECT_EQ(sum, ranks.size() * (ranks.size() + 1) / 2.0);
  const auto names = all_gather(ranks, "rank " + std::to_string(ranks.rank()), "names");
  for (int rank = 0; rank < ranks.size(); ++rank)
    EXPECT_EQ(names[static_cast<size_t>(rank)], "rank " + std::to_string(rank));
  const std::string large(70'000'000, 'x');  // more than one message
  if (ranks.size() == 2) {
    EXPECT_EQ(broadcast(ranks, 1, ranks.rank() == 1 ? large : "", "large").size(), large.size());
  }
  session.finish();
}

TEST_F(InMpi, SharedMemory) {
  MpiSession session;
  Communicator& ranks = session.communicator();
  const Member& me = ranks.members()[static_cast<size_t>(ranks.rank())];
  for (const int64_t bytes : {int64_t{64}, int64_t{5'000'000}}) {
    const auto memory = ranks.share(bytes);
    EXPECT_EQ(memory->part(me.local_rank)[bytes - 1], std::byte{0});
    barrier(ranks, "before writing");
    memory->part(me.local_rank)[bytes - 1] = static_cast<std::byte>(ranks.rank() + 1);
    barrier(ranks, "after writing");
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const Member& other = ranks.members()[static_cast<size_t>(rank)];
      if (other.host_index != me.host_index) continue;
      EXPECT_EQ(memory->part(other.local_rank)[bytes - 1], static_cast<std::byte>(rank + 1));
    }
  }
  session.finish();
}

TEST_F(InMpi, HostsOfTwo) {
  MpiSession session;
  const auto& members = session.communicator().members();
  for (int rank = 0; rank < session.communicator().size(); ++rank) {
    EXPECT_EQ(members[static_cast<size_t>(rank)].host_index, rank / 2);
    EXPECT_EQ(members[static_cast<size_t>(rank)].local_rank, rank % 2);
  }
  session.finish();
}

TEST_F(InMpi, AllReduce) {
  MpiSession session;
  Communicator& ranks = session.communicator();
  {
    Collectives collectives(ranks, {});
    for (const int64_t elements : {int64_t{10}, int64_t{300'000}}) {
      const CollectiveId id = collectives.prepare({"x", DType::f32, Reduction::sum, {elements}});
      const auto memory = collectives.allocate(elements * 4);
      void* const tensor = memory.get();
      for (int step = 0; step < 4; ++step) {
        for (int64_t i = 0; i < elements; ++i)
          static_cast<float*>(tensor)[i] = static_cast<float>(ranks.rank() + step + i % 3);
        collectives.start(id, std::span(&tensor, 1));
        collectives.wait(id);
        const int size = ranks.size();
        for (int64_t i = 0; i < elements; ++i)
          ASSERT_EQ(static_cast<float*>(tensor)[i], static_cast<float>(size * (size - 1) / 2 + size * (step + i % 3)));
      }
    }
  }
  session.finish();
}

/// By which MPI's own all-reduce is always the fastest, up to 256 KB.
CollectivesOptions native_options() {
  CollectivesOptions options;
  options.silence_seconds = 1;
  options.costs.between_hosts = {.latency_seconds = 1e-3, .bytes_per_second = 1e9, .message_seconds = 1e-4};
  options.costs.native = {.seconds = {1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, .own_seconds = {1, 1, 1, 1, 1}};
  return options;
}

TEST_F(InMpi, NativeAllReduce) {
  MpiSession session;
  Communicator& ranks = session.communicator();
  {
    Collectives collectives(ranks, native_options());
    const std::vector<int64_t> sizes{10, 5000, 40'000, 3'000'000};
    std::vector<CollectiveId> ids;
    std::vector<std::shared_ptr<std::byte>> memory;
    for (const int64_t elements : sizes) {
      ids.push_back(collectives.prepare({"x", DType::f32, Reduction::mean, {elements, 3}}));
      memory.push_back(collectives.allocate((elements + 64) * 4));
      const Algorithm chosen = collectives.report(ids.back()).between.algorithm;
      EXPECT_EQ(chosen == Algorithm::native, elements < 3'000'000) << name_of(chosen);
    }
    EXPECT_NE(collectives.report(collectives.prepare({"x", DType::bf16, Reduction::sum, {10}})).between.algorithm,
              Algorithm::native);
    const auto at = [&](size_t k) { return reinterpret_cast<float*>(memory[k].get()); };
    const int size = ranks.size();
    for (int step = 0; step < 20; ++step) {
      // All under way at once, of which what comes last is the most urgent and is awaited first.
      for (size_t k = 0; k < sizes.size(); ++k) {
        for (int64_t i = 0; i < sizes[k] + 3; ++i) at(k)[i] = static_cast<float>(size * (ranks.rank() + step) + i % 3);
        void* const tensors[] = {at(k), at(k) + sizes[k]};
        collectives.start(ids[k], tensors, -static_cast<int64_t>(k));
      }
      for (size_t k = sizes.size(); k-- > 0;) {
        collectives.wait(ids[k]);
        for (int64_t i = 0; i < sizes[k] + 3; ++i)
          ASSERT_NEAR(at(k)[i], static_cast<float>(size * (size - 1)) / 2 + static_cast<float>(size * step + i % 3),
                      1e-3)
              << "size " << sizes[k] << " step " << step;
      }
    }
  }
  session.finish();
}

/// Ends as a program would.
void report_and_abort(MpiSession& session, const Error& error) {
  if (session.claims_report()) fmt::print("REPORT {}\n", error.what());
  std::fflush(stdout);
  session.abort(3);
}

void lose_rank_1(int signal_number) {
  MpiSession session;
  Communicator& ranks = session.communicator();
  try {
    barrier(ranks, "the first step");
    if (ranks.rank() == 1) raise(signal_number);
    barrier(ranks, "the second step", {.silence_seconds = 1});
  } catch (const Error& error) {
    report_and_abort(session, error);
  }
  FAIL() << "the barrier passed";
}

TEST_F(InMpi, StoppedRank) { lose_rank_1(SIGSTOP); }

TEST_F(InMpi, SendsBeforeTheirReceives) {
  constexpr int kMany = 64, kFirstTag = kFirstCollectiveTag, kGoTag = kFirstTag + kMany;
  MpiSession session;
  Communicator& ranks = session.communicator();
  std::vector<std::byte> data(32 << 10), go(1);
  const auto wait = [&](Ticket ticket) {
    while (!ranks.is_done(ticket)) ranks.progress();
  };
  if (ranks.rank() == 0) {
    std::vector<Ticket> sent;
    for (int message = 0; message < kMany; ++message) sent.push_back(ranks.send(1, kFirstTag + message, data));
    for (int look = 0; look < 100; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ranks.progress();
    }
    for (const Ticket ticket : sent) ASSERT_FALSE(ranks.is_done(ticket)) << "nobody receives it yet";
    wait(ranks.send(1, kGoTag, go));
    for (const Ticket ticket : sent) wait(ticket);
  } else {
    wait(ranks.receive(0, kGoTag, go));
    for (int message = 0; message < kMany; ++message) wait(ranks.receive(0, kFirstTag + message, data));
  }
  session.finish();
}

/// More hosts than tell each other directly that they live.
TEST_F(InMpi, ManyHosts) {
  MpiSession session;
  Communicator& ranks = session.communicator();
  barrier(ranks, "the start");
  for (int look = 0; look < 10; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (int peer = 0; peer < ranks.size(); ++peer) EXPECT_LT(ranks.seconds_silent(peer), 5) << peer;
  }
  session.finish();
}

TEST_F(InMpi, StoppedRankInNativeAllReduce) {
  MpiSession session;
  Communicator& ranks = session.communicator();
  try {
    Collectives collectives(ranks, native_options());
    const CollectiveId id = collectives.prepare({"fc.weight", DType::f32, Reduction::sum, {40'000}});
    ASSERT_EQ(collectives.report(id).between.algorithm, Algorithm::native);
    const auto memory = collectives.allocate(160'000);
    void* const tensor = memory.get();
    for (int step = 0; step < 3; ++step) {
      collectives.set_position("step " + std::to_string(step));
      if (ranks.rank() == 1 && step == 2) raise(SIGSTOP);
      collectives.start(id, std::span(&tensor, 1));
      collectives.wait(id);
    }
  } catch (const Error& error) {
    report_and_abort(session, error);
  }
  FAIL() << "a stopped rank took part";
}

TEST_F(InMpi, StoppedRankInACollectiveOfMpi) {
  MpiSession session;
  if (session.communicator().rank() == 1) raise(SIGSTOP);
  std::vector<float> values(1000);
  session.run(CollectiveKind::all_reduce, values, /*limit_seconds=*/1);
  FAIL() << "a stopped rank took part";
}

TEST_F(InMpi, StoppedRankAtTheEnd) {
  MpiSession session;
  if (session.communicator().rank() == 1) {
    // As MpiSession::finish() does it.
    barrier(session.communicator(), "the end of the program");
    barrier(session.communicator(), "the end of the program, to which all had come");
    raise(SIGSTOP);
  }
  session.finish();
}

/// One that has been waited for in the last barrier, but not by all, when it stops.
TEST_F(InMpi, RankStoppedInTheLastBarrier) {
  MpiSession session;
  const auto wait = [](int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); };
  try {
    const int rank = session.communicator().rank();
    std::jthread stops;
    if (rank == 2)
      stops = std::jthread([&] {
        wait(300);
        raise(SIGSTOP);
      });
    if (rank == 0) wait(600);
    session.finish();
  } catch (const Error& error) {
    report_and_abort(session, error);
  }
}

TEST_F(InMpi, RankStoppedBehindTheEnd) {
  MpiSession session;
  const bool is_stopped = session.communicator().rank() == 1;
  session.finish();
  if (is_stopped) raise(SIGSTOP);
}

/// Rank 1 sends, rank 0 receives.
void exchange_wrong_sizes(int64_t sent, int64_t expected) {
  MpiSession session;
  Communicator& ranks = session.communicator();
  try {
    Collectives collectives(ranks, {});
    const bool sends = ranks.rank() == 1;
    const int64_t bytes = sends ? sent : expected;
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    const MessageId id = collectives.prepare({"activations", bytes, sends, 1 - ranks.rank(), 0});
    collectives.start(id, data.data());
    collectives.wait(id);
    barrier(ranks, "the end");
  } catch (const Error& error) {
    report_and_abort(session, error);
  }
  FAIL() << "a message of another size was received";
}

TEST_F(InMpi, ShortMessage) { exchange_wrong_sizes(2000, 4000); }
TEST_F(InMpi, LongMessage) { exchange_wrong_sizes(4000, 2000); }
TEST_F(InMpi, LargeShortMessage) { exchange_wrong_sizes(900'001, 1'000'000); }

TEST_F(InMpi, FailingRank) {
  MpiSession session;
  try {
    if (session.communicator().rank() == 1) fail(ErrorKind::numeric, "the loss is NaN");
    barrier(session.communicator(), "the second step");
  } catch (const Error& error) {
    report_and_abort(session, error);
  }
}

TEST(Ranks, ExchangeOverMpi) { expect_all_pass(mpirun(3, "Exchange"), 3); }
TEST(Ranks, ExchangeLargeMessages) { expect_all_pass(mpirun(2, "Exchange"), 2); }
TEST(Ranks, CountMessagesAsSentOnceTheyAreReceived) {
  expect_all_pass(mpirun(2, "SendsBeforeTheirReceives", "OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo"), 2);
}
TEST(Ranks, SeeEachOthersMemory) { expect_all_pass(mpirun(3, "SharedMemory"), 3); }
TEST(Ranks, SeeTheMemoryOfTheirOwnHostOnly) { expect_all_pass(mpirun(4, "SharedMemory", "WEFT_RANKS_PER_HOST=2"), 4); }
TEST(Ranks, CountAsHostsOnDemand) { expect_all_pass(mpirun(5, "HostsOfTwo", "WEFT_RANKS_PER_HOST=2"), 5); }
TEST(Ranks, ReduceOnOneHost) { expect_all_pass(mpirun(2, "AllReduce"), 2); }
TEST(Ranks, ReduceOnThreeHosts) { expect_all_pass(mpirun(3, "AllReduce", "WEFT_RANKS_PER_HOST=1"), 3); }
TEST(Ranks, ReduceOnTwoHostsOfTwo) { expect_all_pass(mpirun(4, "AllReduce", "WEFT_RANKS_PER_HOST=2"), 4); }
TEST(Ranks, ReduceByMpisOwnAllReduce) { expect_all_pass(mpirun(3, "NativeAllReduce", "WEFT_RANKS_PER_HOST=1"), 3); }
TEST(Ranks, ReduceOnAnUnevenLastHost) { expect_all_pass(mpirun(3, "AllReduce", "WEFT_RANKS_PER_HOST=2"), 3); }

class RanksLose : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Hosts, RanksLose, testing::Values("", "WEFT_RANKS_PER_HOST=1"));

TEST_P(RanksLose, AStoppedRankWithinBoundedTimeAndNameIt) {
  const Outcome outcome = mpirun(3, "StoppedRank", GetParam());
  EXPECT_NE(outcome.output.find("REPORT [the second step]: rank 1 on host"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("no sign of life"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, kBoundSeconds);
}

TEST(Ranks, OfManyHostsAllLive) { expect_all_pass(mpirun(66, "ManyHosts", "WEFT_RANKS_PER_HOST=1"), 66); }

TEST(Ranks, OfManyHostsLoseOneWithinBoundedTimeAndNameIt) {
  const Outcome outcome = mpirun(66, "StoppedRank", "WEFT_RANKS_PER_HOST=1");
  EXPECT_NE(outcome.output.find("REPORT [the second step]: rank 1 on host"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, kBoundSeconds);
}

TEST(Ranks, LoseOneInMpisOwnAllReduceWithinBoundedTimeAndNameIt) {
  const Outcome outcome = mpirun(3, "StoppedRankInNativeAllReduce", "WEFT_RANKS_PER_HOST=1");
  EXPECT_NE(outcome.output.find("REPORT [all_reduce] 'fc.weight' at step 2: rank 1 on host"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, kBoundSeconds);
}

/// Of three ranks, one of which is stopped where MPI waits for it without a bound.
/// In some of such ends Open MPI's mpirun itself fails: it waits for ever for a lock of its own (`weft launch` ends it
/// then), or reads address 0 in PMIx_server_finalize. Where the ranks said what they should, the test starts it again.
void expect_end(const char* scenario, const char* said) {
  constexpr int kStarts = 3;
  Outcome outcome;
  for (int start = 0; start < kStarts; ++start) {
    outcome = mpirun(3, scenario);
    const bool hangs = outcome.exit_code == 124 || outcome.exit_code == 137;  // ended by `timeout`
    const bool crashes =
        outcome.exit_code == 128 + SIGSEGV && outcome.output.find("(PMIx_server_finalize") != std::string::npos;
    if (!(hangs || crashes) || outcome.output.find(said) == std::string::npos) break;
  }
  EXPECT_NE(outcome.output.find(said), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.exit_code, 75) << outcome.output;
  EXPECT_LT(outcome.seconds, kBoundSeconds);
}

TEST(Ranks, LoseOneInACollectiveOfMpiAndEndAllTheSame) {
  expect_end("StoppedRankInACollectiveOfMpi", "a collective of MPI does not end: a rank was stopped");
}

TEST(Ranks, LoseOneBehindTheLastBarrierAndEndAllTheSame) {
  expect_end("StoppedRankAtTheEnd", "its work is done and written, but MPI does not end");
}

TEST(Ranks, LoseOneInTheLastBarrierAndNameIt) {
  const Outcome outcome = mpirun(4, "RankStoppedInTheLastBarrier", "WEFT_RANKS_PER_HOST=1");
  // By those in either of the barriers, whose word comes first; no other way.
  EXPECT_NE(outcome.output.find("]: rank 2 on host"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("cut off"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, kBoundSeconds);
}

TEST(Ranks, LoseNothingByAStopBehindTheEnd) {
  const Outcome outcome = mpirun(3, "RankStoppedBehindTheEnd");
  expect_all_pass(outcome, 3);
  EXPECT_NE(outcome.output.find("weft: rank 1 on host '"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("was stopped at its very end"), std::string::npos) << outcome.output;
  EXPECT_LT(outcome.seconds, kBoundSeconds);
}

TEST_P(RanksLose, NothingByMessagesOfWrongSizesButNameThem) {
  for (const auto& [test, sizes] : {std::pair{"ShortMessage", "sends 2000 bytes where rank 0 on host '"},
                                    {"LongMessage", "sends 4000 bytes where rank 0 on host '"},
                                    {"LargeShortMessage", "sends 900001 bytes where rank 0 on host '"}}) {
    const Outcome outcome = mpirun(2, test, GetParam());
    EXPECT_NE(outcome.output.find("REPORT [receive] 'activations': rank 1 on host '"), std::string::npos)
        << outcome.output;
    EXPECT_NE(outcome.output.find(sizes), std::string::npos) << outcome.output;
    EXPECT_EQ(outcome.exit_code, 3) << outcome.output;
    EXPECT_LT(outcome.seconds, kBoundSeconds);
  }
}

TEST(Ranks, LoseARankThatFailsAndAllEnd) {
  const Outcome outcome = mpirun(3, "FailingRank");
  EXPECT_NE(outcome.output.find("REPORT the loss is NaN"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("REPORT ["), std::string::npos) << "a rank reports what follows: " << outcome.output;
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, kBoundSeconds);
}

}  // namespace
}  // namespace weft::comm
