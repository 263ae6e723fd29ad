#include "weft/tune/owner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace weft::tune {

namespace {

std::string boot() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

/// In the clock ticks of the machine since its boot; empty where there is no such process, or it has ended.
std::string begin_of(long process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');  // of a name that may hold anything
  if (name_end == text.npos) return "";
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22 && fields >> field; ++number)
    if (number == 3 && (field == "Z" || field == "X")) return "";
  return field;
}

std::string owner_of(long process) {
  const std::string begin = begin_of(process);
  return begin.empty() ? "" : fmt::format("{}:{}:{}", boot(), process, begin);
}

}  // namespace

std::string this_process() { return owner_of(getpid()); }

bool is_running(const std::string& owner) {
  const size_t begin = owner.find(':'), end = owner.rfind(':');
  if (begin == owner.npos || begin == end) return false;
  return owner_of(std::atol(owner.substr(begin + 1, end - begin - 1).c_str())) == owner;
}

}  // namespace weft::tune
