#include "weft/launch/process_table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace weft::launch {

namespace {

namespace fs = std::filesystem;

fs::path folder_of(pid_t process) { return fs::path("/proc") / std::to_string(process); }

/// What "/proc/N/stat" says from the state on: "pid (name) state parent ...", where a name may hold anything.
std::string after_name(const std::string& stat) {
  const size_t end = stat.rfind(") ");
  return end == std::string::npos ? "" : stat.substr(end + 2);
}

}  // namespace

std::string read_all(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<RunningProcess> running_processes() {
  std::vector<RunningProcess> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator("/proc", code)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    RunningProcess running{.process = static_cast<pid_t>(std::stol(name))};
    const std::string stat = after_name(read_all(entry.path() / "stat"));
    if (std::sscanf(stat.c_str(), "%c %d", &running.state, &running.parent) == 2 && running.state != 'Z')
      found.push_back(running);
  }
  return found;
}

fs::path program_of(pid_t process) {
  std::error_code code;
  return fs::read_symlink(folder_of(process) / "exe", code);
}

std::optional<std::string> variable_of(pid_t process, const std::string& name) {
  std::istringstream variables(read_all(folder_of(process) / "environ"));
  for (std::string text; std::getline(variables, text, '\0');)
    if (text.starts_with(name + "=")) return text.substr(name.size() + 1);
  return std::nullopt;
}

void set_shown_command(const std::string& text) {
  // The kernel shows the memory in which the words of the command once were: fields 48 and 49 of proc(5)'s stat.
  std::istringstream fields(after_name(read_all("/proc/self/stat")));
  std::string skipped;
  for (int field = 3; field < 48; ++field) fields >> skipped;
  uintptr_t begin = 0, end = 0;
  if (!(fields >> begin >> end) || begin == 0 || end <= begin + 1) return;
  auto* const words = reinterpret_cast<char*>(begin);
  std::memset(words, 0, end - begin);
  std::memcpy(words, text.data(), std::min<size_t>(text.size(), end - begin - 1));
}

}  // namespace weft::launch
