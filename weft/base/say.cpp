#include "weft/base/say.h"

#include <fmt/format.h>

#include <cstdio>

#include "weft/base/format.h"

namespace weft {

namespace {

/// A message may quote a line of a file, which may be long: its beginning and its end say enough.
std::string shortened(const std::string& line) {
  constexpr size_t kMost = 4000;
  if (line.size() <= kMost) return line;
  const size_t half = kMost / 2;
  return fmt::format("{} ... ({} bytes) ... {}", line.substr(0, half), line.size() - 2 * half,
                     line.substr(line.size() - half));
}

}  // namespace

void say(const std::string& line) { std::fputs(fmt::format("weft: {}\n", printable(shortened(line))).c_str(), stderr); }

}  // namespace weft
