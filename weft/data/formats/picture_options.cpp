#include "weft/data/formats/picture_options.h"

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/memory.h"
#include "weft/data/pictures/disk_pictures.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace fs = std::filesystem;

int64_t channels_option(const SpecOptions& options, int64_t fallback) {
  const int64_t channels = options.integer("channels", fallback, 1, 3);
  if (channels == 2) fail(ErrorKind::usage, "[{}] channels=2: wants 3 (RGB) or 1 (grey)", options.kind());
  return channels;
}

bool exact_option(const SpecOptions& options, bool fallback) {
  return options.choice(kDecodeOption, fallback ? "exact" : "scaled", {"scaled", "exact"}) == "exact";
}

bool decodes_exactly(const std::string& encoding) {
  const auto root = nlohmann::json::parse(encoding, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return false;
  const auto found = root.find(kDecodeOption);
  return found != root.end() && *found == "exact";
}

int64_t cache_option(const SpecOptions& options, Split split) {
  if (options.text("cache", "auto") == "auto") return available_memory_bytes() / (split == Split::train ? 2 : 8);
  return options.integer("cache", 0, 0, 1 << 20) * 1'000'000;
}

int64_t disk_option(const SpecOptions& options, Split split) {
  if (options.text("cache", "auto") == "0") return 0;
  if (options.text("disk", "auto") == "auto")
    return DiskPictures::usual_limit_bytes() / (split == Split::train ? 1 : 8);
  return options.integer("disk", 0, 0, 1 << 24) * 1'000'000;
}

SplitFolders split_folders(const fs::path& directory, const std::function<bool(const fs::path&)>& holds_data) {
  SplitFolders folders;
  if (!holds_data(directory / "train")) return folders;  // a class may be called test
  folders.train = directory / "train";
  for (const char* name : {"test", "val", "valid", "validation"})
    if (folders.test.empty() && holds_data(directory / name)) folders.test = directory / name;
  return folders;
}

std::string name_of_folder(const fs::path& directory) {
  const fs::path path = fs::absolute(directory).lexically_normal();  // "." has a name, too
  return printable_utf8((path.has_filename() ? path : path.parent_path()).filename().string());
}

}  // namespace weft::data
