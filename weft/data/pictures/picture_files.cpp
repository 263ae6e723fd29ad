#include "weft/data/pictures/picture_files.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include "weft/base/error.h"

namespace weft::data {

namespace fs = std::filesystem;

namespace {

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  return extension;
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

}  // namespace

bool is_picture(const fs::path& path) {
  constexpr std::array<std::string_view, 5> known = {".jpg", ".jpeg", ".png", ".ppm", ".pgm"};
  return std::find(known.begin(), known.end(), lower_extension(path)) != known.end();
}

std::vector<fs::path> sorted_entries(const std::string& kind, const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (!is_hidden(at->path())) entries.push_back(at->path());
  if (code) fail(ErrorKind::io, "[{}] cannot read the folder '{}': {}", kind, folder.string(), code.message());
  std::sort(entries.begin(), entries.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return entries;
}

}  // namespace weft::data
