#include "weft/tune/study/owner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "weft/base/parse_number.h"

namespace weft::tune {

namespace {

std::string boot() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

/// In the clock ticks of the machine since its boot; empty where there is no such process, or it has ended.
std::string begin_of(int64_t process) {
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

}  // namespace

std::string identity_of(int64_t process) {
  const std::string begin = begin_of(process);
  return begin.empty() ? "" : fmt::format("{}:{}:{}", boot(), process, begin);
}

std::string this_process() { return identity_of(getpid()); }

constexpr const char* kHere = "here";

std::string owner_here(const std::string& tuner, const std::string& training) {
  return fmt::format("{} {}{}{}", tuner, kHere, training.empty() ? "" : " ", training);
}

bool is_here(const std::string& owners) {
  std::istringstream words(owners);
  return std::find(std::istream_iterator<std::string>(words), {}, kHere) != std::istream_iterator<std::string>();
}

bool is_running(const std::string& owners) {
  std::istringstream words(owners);
  for (std::string owner; words >> owner;) {
    const size_t begin = owner.find(':'), end = owner.rfind(':');
    if (begin == owner.npos || begin == end) continue;
    const std::optional<int64_t> process = parse_number<int64_t>(owner.substr(begin + 1, end - begin - 1));
    if (process && identity_of(*process) == owner) return true;
  }
  return false;
}

}  // namespace weft::tune
