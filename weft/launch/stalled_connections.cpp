#include "weft/launch/stalled_connections.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "weft/launch/process_table.h"

namespace weft::launch {

namespace {

namespace fs = std::filesystem;

/// Of "/proc/N/fd/M -> socket:[inode]".
std::set<std::string> sockets_of(pid_t process) {
  constexpr std::string_view kSocket = "socket:[";
  std::set<std::string> inodes;
  std::error_code code;
  // In steps that throw nothing: the process may end meanwhile.
  for (fs::directory_iterator entry(fmt::format("/proc/{}/fd", process), code), end; entry != end;
       entry.increment(code)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry->path(), gone).string();
    if (target.starts_with(kSocket)) inodes.insert(target.substr(kSocket.size(), target.size() - kSocket.size() - 1));
  }
  return inodes;
}

/// Of "0200000A:1F90": words of the address as this machine reads them, with the port; empty for anything else.
std::string address_of(std::string_view text) {
  const std::string words(text.substr(0, text.find(':')));
  std::array<uint32_t, 4> bytes{};
  if (words.size() != 8 && words.size() != 32) return "";
  for (size_t at = 0; at < words.size(); at += 8)
    bytes[at / 8] = static_cast<uint32_t>(std::strtoul(words.substr(at, 8).c_str(), nullptr, 16));
  std::array<char, INET6_ADDRSTRLEN> printed{};
  inet_ntop(words.size() == 8 ? AF_INET : AF_INET6, bytes.data(), printed.data(), printed.size());
  return printed.data();
}

}  // namespace

std::vector<std::string> stalled_peers_in(std::string_view table, const std::set<std::string>& inodes, int resends) {
  constexpr std::string_view kResends = "01";  // what the timer of a connection is for
  std::vector<std::string> stalled;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string number, here, peer, state, queues, timer, resent, user, timeout, inode;
    if (!(fields >> number >> here >> peer >> state >> queues >> timer >> resent >> user >> timeout >> inode)) continue;
    if (!inodes.contains(inode) || !timer.starts_with(kResends)) continue;
    if (std::strtol(resent.c_str(), nullptr, 16) < resends) continue;
    const std::string address = address_of(peer);
    if (!address.empty() && std::find(stalled.begin(), stalled.end(), address) == stalled.end())
      stalled.push_back(address);
  }
  return stalled;
}

std::vector<std::string> stalled_peers(pid_t process, int resends) {
  const std::string table =
      read_all(fmt::format("/proc/{}/net/tcp", process)) + read_all(fmt::format("/proc/{}/net/tcp6", process));
  return stalled_peers_in(table, sockets_of(process), resends);
}

}  // namespace weft::launch
