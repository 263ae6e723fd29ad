#include "weft/base/kernel_files.h"

#include <fstream>
#include <limits>

namespace weft {

std::optional<int64_t> number_behind(const std::filesystem::path& file, const std::string& key) {
  std::ifstream lines(file);
  std::string word;
  for (int64_t number = 0; lines >> word; lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n'))
    if (word == key && lines >> number) return number;
  return std::nullopt;
}

}  // namespace weft
