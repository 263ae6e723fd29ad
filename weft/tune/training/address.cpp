#include "weft/tune/training/address.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/parse_number.h"

namespace weft::tune {

namespace {

using Resolved = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Resolved addresses_of(const Address& address, bool to_listen) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = to_listen ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), address.port.c_str(), &hints, &found);
  if (code != 0)
    fail(ErrorKind::usage, "'{}' is no address: {}; give HOST:PORT", print_address(address), gai_strerror(code));
  return {found, &freeaddrinfo};
}

int new_socket(const addrinfo& of) {
  return socket(of.ai_family, of.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, of.ai_protocol);
}

/// 0, or the reason why not.
int connect_within(int descriptor, const addrinfo& to, double seconds) {
  if (connect(descriptor, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{descriptor, POLLOUT, 0};
  if (poll(&waiting, 1, static_cast<int>(seconds * 1000)) <= 0) return ETIMEDOUT;
  int code = 0;
  socklen_t size = sizeof code;
  getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size);
  return code;
}

}  // namespace

Address parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon == text.npos ? 0 : colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const auto port = colon == text.npos ? std::nullopt : parse_number<int64_t>(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535)
    fail(ErrorKind::usage, "'{}' is no address; give HOST:PORT, such as node1:7777", text);
  return {host, std::to_string(*port)};
}

std::string print_address(const Address& address) {
  const bool is_numbers = address.host.find(':') != std::string::npos;
  return is_numbers ? fmt::format("[{}]:{}", address.host, address.port)
                    : fmt::format("{}:{}", address.host, address.port);
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}
Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket listen_at(const Address& address) {
  const Resolved found = addresses_of(address, true);
  int code = 0;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    Socket listening(new_socket(*at));
    const int yes = 1, no = 0;
    setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (at->ai_family == AF_INET6) setsockopt(listening.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(listening.get(), at->ai_addr, at->ai_addrlen) == 0 && listen(listening.get(), SOMAXCONN) == 0)
      return listening;
    code = errno;
  }
  fail(ErrorKind::io, "cannot listen at {}: {}; give another address of this host, or port 0 for any free one",
       print_address(address), std::strerror(code));
}

std::string port_of(const Socket& listening) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const uint16_t port = address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                                      : reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return std::to_string(ntohs(port));
}

Socket accept_next(const Socket& listening) {
  return Socket(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Socket connect_to(const Address& address, double seconds) {
  const Resolved found = addresses_of(address, false);
  int code = 0;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    Socket connected(new_socket(*at));
    code = connect_within(connected.get(), *at, seconds);
    if (code == 0) return connected;
  }
  fail(ErrorKind::communication,
       "cannot reach a tuner at {}: {}; start one there by `weft tune --resume STUDY --serve {}`, or look after the "
       "network",
       print_address(address), std::strerror(code), print_address({"", address.port}));
}

}  // namespace weft::tune
