#include "weft/base/host_name.h"

#include <unistd.h>

#include <array>

namespace weft {

std::string host_name() {
  std::array<char, 256> name{};
  const bool is_named = gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return is_named ? name.data() : "localhost";
}

}  // namespace weft
