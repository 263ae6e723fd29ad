// Who may work for a tuner, and what becomes of a trial whose worker is gone.
#include "weft/tune/training/worker_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/support/temporary_folder.h"
#include "weft/base/clock.h"
#include "weft/base/files.h"
#include "weft/base/version.h"

namespace weft::tune {
namespace {

namespace fs = std::filesystem;

class WorkerServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = std::make_unique<WorkerServer>(
        Address{"127.0.0.1", "0"},
        ServedStudy{.name = "study", .token = kToken, .recipe = "", .data = "", .silence_seconds = 2});
    connection_ = std::make_unique<Connection>(connect_to({"127.0.0.1", server_->port()}, 5), 5);
    connection_->allow_long_messages();
  }
  /// Null where none comes.
  Message await() {
    for (const double begin = steady_seconds(); steady_seconds() - begin < 5;) {
      connection_->pump(steady_seconds());
      if (std::optional<Message> message = connection_->next()) return *message;
      if (connection_->is_lost()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return {};
  }
  Message greet(const std::string& token, const std::string& weft) {
    const Message hello = await();
    EXPECT_EQ(hello.value("type", ""), "hello");
    connection_->send({{"type", "hello"},
                       {"protocol", kProtocol},
                       {"weft", weft},
                       {"nonce", "n"},
                       {"proof", proof_of(Side::worker, token, hello.at("nonce"), "n")},
                       {"host", "node7"},
                       {"process", "p"},
                       {"memory", 1000}});
    return await();
  }
  void become_ready() {
    ASSERT_EQ(greet(kToken, std::string(version())).value("type", ""), "welcome");
    connection_->send({{"type", "ready"}});
    for (int wait = 0; wait < 500 && server_->free_places() == 0; ++wait) {
      connection_->pump(steady_seconds());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(server_->free_places(), 1);
  }
  std::unique_ptr<Training> train(int64_t memory = 100) {
    write_atomically(directory_ / "recipe.toml", "epochs = 1\n");
    return server_->train(
        {.trial = 3, .run = directory_ / "0003", .recipe = directory_ / "recipe.toml", .memory = memory});
  }
  static constexpr const char* kToken = "a token that is long enough";
  const TemporaryFolder folder_;
  const fs::path directory_ = folder_.path();
  std::unique_ptr<WorkerServer> server_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(WorkerServerTest, AWorkerThatOpensItsDataMayBeSilent) {
  ASSERT_EQ(greet(kToken, std::string(version())).value("type", ""), "welcome");
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // more than the server's two seconds
  connection_->send({{"type", "ready"}});
  for (int wait = 0; wait < 500 && server_->free_places() == 0; ++wait) {
    connection_->pump(steady_seconds());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(server_->free_places(), 1);
  EXPECT_FALSE(connection_->is_lost()) << connection_->why();
}

TEST_F(WorkerServerTest, AnotherVersionIsRefusedByName) {
  const Message answer = greet(kToken, "9.9.9");
  EXPECT_EQ(answer.value("type", ""), "refused");
  EXPECT_NE(answer.value("why", "").find("the worker is weft 9.9.9"), std::string::npos) << answer;
  const std::vector<std::string> notes = server_->notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("the worker on node7 is refused"), std::string::npos) << notes[0];
}

TEST_F(WorkerServerTest, AnotherTokenIsRefused) {
  const Message answer = greet("a token of somebody else", std::string(version()));
  EXPECT_EQ(answer.value("type", ""), "refused");
  EXPECT_NE(answer.value("why", "").find("token"), std::string::npos) << answer;
  EXPECT_FALSE(answer.contains("recipe"));
}

TEST_F(WorkerServerTest, AStrangerGetsNoTrial) {
  connection_->send({{"type", "ready"}});
  await();  // hello
  EXPECT_EQ(await().value("type", ""), "refused");
  EXPECT_EQ(server_->free_places(), 0);
}

TEST_F(WorkerServerTest, TheTunerProvesThatItKnowsTheToken) {
  const Message hello = await();
  connection_->send({{"type", "hello"},
                     {"protocol", kProtocol},
                     {"weft", version()},
                     {"nonce", "n"},
                     {"proof", proof_of(Side::worker, kToken, hello.at("nonce"), "n")},
                     {"host", "h"},
                     {"process", "p"},
                     {"memory", 1}});
  EXPECT_EQ(await().value("proof", ""), proof_of(Side::tuner, kToken, hello.at("nonce"), "n"));
}

TEST_F(WorkerServerTest, AWorkerThatClosesLosesItsTrial) {
  become_ready();
  const std::unique_ptr<Training> training = train();
  ASSERT_NE(training, nullptr);
  EXPECT_EQ(await().value("trial", -1), 3);
  EXPECT_EQ(train(), nullptr) << "its only place is taken";
  connection_.reset();
  for (int wait = 0; wait < 500 && !training->has_ended(); ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(training->has_ended());
  EXPECT_TRUE(training->was_lost());
}

TEST_F(WorkerServerTest, ASilentWorkerLosesItsTrialInTime) {
  become_ready();
  const std::unique_ptr<Training> training = train();
  ASSERT_NE(training, nullptr);
  const double begin = steady_seconds();  // as where the cable is cut: the connection stays, and nothing comes
  while (!training->has_ended() && steady_seconds() - begin < 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(training->was_lost());
}

TEST_F(WorkerServerTest, ARunThatWasSentBackIsInItsPlace) {
  become_ready();
  const std::unique_ptr<Training> training = train();
  ASSERT_NE(training, nullptr);
  EXPECT_EQ(await().value("type", ""), "train");
  connection_->send({{"type", "metrics"}, {"at", 0}, {"text", "{\"epoch\":1}\n"}});
  fs::create_directories(directory_ / "there");
  write_atomically(directory_ / "there" / "spec.toml", "epochs = 1\n");
  const fs::path metrics = directory_ / "0003/metrics.jsonl";
  const auto shown = [&] { return fs::exists(metrics) ? read_text(metrics) : std::string(); };
  for (int wait = 0; wait < 500 && shown().empty(); ++wait) {
    connection_->pump(steady_seconds());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(shown(), "{\"epoch\":1}\n") << "while it trains";
  connection_->send_folder(directory_ / "there");
  connection_->send({{"type", "ended"}, {"code", 0}, {"was_killed", false}, {"output", "done"}});
  for (int wait = 0; wait < 500 && !training->has_ended(); ++wait) {
    connection_->pump(steady_seconds());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_TRUE(training->has_ended());
  EXPECT_FALSE(training->was_lost());
  EXPECT_EQ(training->read(), "done");
  EXPECT_EQ(read_text(directory_ / "0003/spec.toml"), "epochs = 1\n");
  EXPECT_FALSE(fs::exists(directory_ / "0003.received"));
  EXPECT_EQ(server_->free_places(), 1);
}

TEST_F(WorkerServerTest, TheEndIsTold) {
  become_ready();
  std::thread ending([&] { server_->end("the search has ended"); });
  EXPECT_EQ(await().value("why", ""), "the search has ended");
  ending.join();
}

TEST(Token, IsMadeOnceForItsOwner) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "token";
  const std::string token = kept_token(file);
  EXPECT_EQ(kept_token(file), token);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace weft::tune
