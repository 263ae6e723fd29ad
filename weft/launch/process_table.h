// The processes of this host, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weft::launch {

struct RunningProcess {
  pid_t process = -1, parent = -1;
  char state = '?';  // 'T': stopped; proc(5)
};

/// Those that have not ended; zombies have.
std::vector<RunningProcess> running_processes();
/// What a file of /proc says, whose size is not known before; empty where there is none, and what a process that ends
/// meanwhile leaves unread is missing.
std::string read_all(const std::filesystem::path& path);
/// The file that it runs; empty where it has ended, or is another user's.
std::filesystem::path program_of(pid_t process);
/// Of the environment that it was started with; nothing where there is none, or it may not be read.
std::optional<std::string> variable_of(pid_t process, const std::string& name);
/// What `ps` shows of this process from now on, cut where its own command was shorter.
void set_shown_command(const std::string& text);

}  // namespace weft::launch
