// Where a tuner listens, and sockets there.
#pragma once

#include <string>

namespace weft::tune {

struct Address {
  std::string host, port;
};

/// "node1:7777", "[::1]:7777", or ":7777" for all of this host's addresses. Error(usage) for anything else.
Address parse_address(const std::string& text);
std::string print_address(const Address& address);

/// A file descriptor that is closed with it.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Port 0: any free one. Error(io) where nobody can listen there.
Socket listen_at(const Address& address);
/// The port that it listens at.
std::string port_of(const Socket& listening);
/// Of the next one who wants to talk; -1 where nobody does.
Socket accept_next(const Socket& listening);
/// Error(communication) where nobody listens there, or the host does not answer for so long.
Socket connect_to(const Address& address, double seconds);

}  // namespace weft::tune
