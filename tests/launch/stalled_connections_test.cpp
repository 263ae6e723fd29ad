// Connections on which nothing gets through: of a table as Linux writes it, and of this process, one of whose sockets
// drops all that comes.
#include "weft/launch/stalled_connections.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace weft::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 01004D0A:A0C2 03004D0A:0401 01 0000005A:00000000 01:000001F4 00000005     0        0 71 2 0 409 4 30 1 7\n"
    "   1: 01004D0A:A0C4 02004D0A:0401 01 0000005A:00000000 01:00000014 00000001     0        0 72 2 0 20 4 30 10 7\n"
    "   2: 01004D0A:A0C6 04004D0A:0401 01 00000000:00000000 02:0000005A 00000005     0        0 73 2 0 20 4 30 10 7\n"
    "   3: 01004D0A:A0C8 05004D0A:0401 01 0000005A:00000000 01:000001F4 00000005     0        0 99 2 0 409 4 30 1 7\n";

TEST(StalledConnections, AreThoseOfTheProcessThatSendAgainAndAgain) {
  EXPECT_THAT(stalled_peers_in(kTable, {"71", "72", "73"}, 5), ElementsAre("10.77.0.3"));
  EXPECT_THAT(stalled_peers_in(kTable, {"71", "72", "73"}, 1), ElementsAre("10.77.0.3", "10.77.0.2"));
  EXPECT_THAT(stalled_peers_in(kTable, {"71", "72", "73"}, 6), IsEmpty());
}

TEST(StalledConnections, HaveAddressesOfVersion6Too) {
  const std::string line =
      "   0: 00000000000000000000000001000000:A0C2 B80D0120000000000000000002000000:0401 01 0000005A:00000000 "
      "01:000001F4 "
      "00000007     0        0 71 2 0 409 4 30 1 7\n";
  EXPECT_THAT(stalled_peers_in(line, {"71"}, 5), ElementsAre("2001:db8::2"));
}

/// Two ends of a connection within this process.
class Connection {
 public:
  Connection() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(bind(listener, name, bytes), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    getsockname(listener, name, &bytes);
    sender_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(sender_, name, bytes), 0);
    receiver_ = accept(listener, nullptr, nullptr);
    close(listener);
  }
  ~Connection() {
    close(sender_);
    close(receiver_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The receiver drops all that comes, before it is acknowledged.
  void cut() const {
    sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    const sock_fprog program{.len = 1, .filter = &drop};
    EXPECT_EQ(setsockopt(receiver_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
  }
  void send() const { EXPECT_EQ(write(sender_, "x", 1), 1); }

 private:
  int sender_ = -1, receiver_ = -1;
};

TEST(StalledConnections, AreFoundInAProcess) {
  const Connection connection;
  connection.send();
  EXPECT_THAT(stalled_peers(getpid(), 1), IsEmpty());
  connection.cut();
  connection.send();
  std::vector<std::string> stalled;
  for (int look = 0; look < 500 && stalled.empty(); ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stalled = stalled_peers(getpid(), 2);
  }
  EXPECT_THAT(stalled, ElementsAre("127.0.0.1"));
}

}  // namespace
}  // namespace weft::launch
