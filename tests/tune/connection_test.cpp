// Messages and folders between a tuner and its workers.
#include "weft/tune/training/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "weft/base/files.h"

namespace weft::tune {
namespace {

namespace fs = std::filesystem;

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    raw_ = ends[1];
    here_ = std::make_unique<Connection>(Socket(ends[0]), 5);
  }
  void TearDown() override {
    here_.reset();
    there_.reset();
  }
  Connection& there() {
    if (!there_) there_ = std::make_unique<Connection>(Socket(raw_), 5);
    return *there_;
  }
  /// Until nothing moves any more.
  void pump() {
    for (int round = 0; round < 200; ++round) {
      here_->pump(now_);
      there().pump(now_);
    }
  }
  const TemporaryFolder folder_;
  const fs::path directory_ = folder_.path();
  int raw_ = -1;
  std::unique_ptr<Connection> here_, there_;
  double now_ = 100;
};

TEST_F(ConnectionTest, MessagesComeInOrder) {
  here_->send({{"type", "one"}});
  here_->send({{"type", "two"}, {"n", 3}});
  pump();
  EXPECT_EQ(there().next()->at("type"), "one");
  EXPECT_EQ(there().next()->at("n"), 3);
  EXPECT_FALSE(there().next());
  EXPECT_TRUE(here_->is_sent());
}

TEST_F(ConnectionTest, AFolderArrivesWithItsFilesAndLinks) {
  const fs::path from = directory_ / "from", to = directory_ / "to";
  fs::create_directories(from / "checkpoints/step-1");
  std::string large(3'000'000, 'x');
  for (size_t at = 0; at < large.size(); ++at) large[at] = static_cast<char>(at * 7919 >> 3);
  write_atomically(from / "checkpoints/step-1/model", large);
  write_atomically(from / "empty", "");
  fs::create_directory_symlink("step-1", from / "checkpoints/best");
  fs::create_directories(to / "old");
  there().receive_into(to);
  there().allow_long_messages();
  here_->send_folder(from);
  here_->send({{"type", "after"}});
  pump();
  EXPECT_EQ(there().next()->at("type"), "folder");
  EXPECT_EQ(there().next()->at("type"), "after");
  EXPECT_EQ(read_text(to / "checkpoints/step-1/model"), large);
  EXPECT_EQ(read_text(to / "empty"), "");
  EXPECT_EQ(fs::read_symlink(to / "checkpoints/best"), "step-1");
  EXPECT_FALSE(fs::exists(to / "old"));
}

TEST_F(ConnectionTest, WhoSendsAFolderThatNobodyWaitsForIsLost) {
  fs::create_directories(directory_ / "from");
  here_->send_folder(directory_ / "from");
  pump();
  EXPECT_NE(there().why().find("nobody asked for"), std::string::npos) << there().why();
}

TEST_F(ConnectionTest, NamesThatLeadOutOfTheFolderAreRefused) {
  const auto frame = [](char kind, const std::string& content) {
    std::string text(1, kind);
    for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(uint64_t{content.size()} >> shift);
    return text + content;
  };
  here_->receive_into(directory_ / "to");
  const std::string sent = frame('b', "") + frame('f', R"({"name":"../../evil","bytes":1})") + frame('c', "x");
  ASSERT_EQ(send(raw_, sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
  here_->pump(now_);
  EXPECT_NE(here_->why().find("leads out of its folder"), std::string::npos) << here_->why();
  EXPECT_FALSE(fs::exists(directory_ / "evil"));
  close(raw_);
}

TEST_F(ConnectionTest, AStrangerMayNotSendMuch) {
  here_->send({{"type", std::string(100'000, 'x')}});
  pump();
  EXPECT_TRUE(there().is_lost());
}

TEST_F(ConnectionTest, WhatIsNoMessageOfWeftIsRefused) {
  const std::string sent = "GET / HTTP/1.1\r\nHost: example\r\n\r\n";
  ASSERT_GT(send(raw_, sent.data(), sent.size(), 0), 0);
  here_->pump(now_);
  EXPECT_NE(here_->why().find("does not speak as weft does"), std::string::npos);
  close(raw_);
}

TEST_F(ConnectionTest, SignsOfLifeKeepAQuietEnd) {
  for (int second = 0; second < 20; ++second, ++now_) {
    here_->pump(now_);
    there().pump(now_);
  }
  EXPECT_FALSE(here_->is_lost());
  EXPECT_FALSE(there().is_lost());
}

TEST_F(ConnectionTest, ASilentEndIsLostInTime) {
  there();
  here_->pump(now_);
  here_->pump(now_ + 4.9);
  EXPECT_FALSE(here_->is_lost());
  here_->pump(now_ + 5.1);
  EXPECT_NE(here_->why().find("silent for 5 s"), std::string::npos) << here_->why();
}

TEST(Address, IsReadAndNamesMistakes) {
  EXPECT_EQ(parse_address("node1:7777").host, "node1");
  EXPECT_EQ(parse_address("[::1]:7777").host, "::1");
  EXPECT_EQ(print_address(parse_address("[::1]:7777")), "[::1]:7777");
  EXPECT_EQ(parse_address(":7777").host, "");
  for (const char* text : {"node1", "node1:x", "node1:70000"})
    EXPECT_NE(test::error_of([&] { parse_address(text); }, ErrorKind::usage).find("is no address"), std::string::npos);
}

}  // namespace
}  // namespace weft::tune
