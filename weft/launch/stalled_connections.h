// Connections that are cut while something is under way on them: TCP sends that again for a quarter of an hour before
// it says so, and asks for no other sign of life meanwhile.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::launch {

/// The addresses of others, "10.0.0.2", to which TCP connections of the process have sent something so many times again
/// without an answer; each once. The waits in between double, from about 0.2 s on. None where the process has ended, or
/// is another user's.
std::vector<std::string> stalled_peers(pid_t process, int resends);

/// The same of the text of /proc/N/net/tcp or tcp6 (proc(5)), for sockets with these inodes.
std::vector<std::string> stalled_peers_in(std::string_view table, const std::set<std::string>& inodes, int resends);

}  // namespace weft::launch
