#include "weft/infer/input_files.h"

#include <glob.h>

#include <filesystem>

#include "weft/base/error.h"
#include "weft/data/pictures/picture_files.h"

namespace weft::infer {

namespace {

namespace fs = std::filesystem;

void add_pictures(const fs::path& folder, std::vector<std::string>& files) {
  for (const fs::path& entry : data::sorted_entries("images", folder)) {
    std::error_code code;
    if (fs::is_directory(entry, code) && !fs::is_symlink(entry, code))
      add_pictures(entry, files);
    else if (data::is_picture(entry))
      files.push_back(entry.string());
  }
}

std::vector<std::string> matches_of(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), GLOB_TILDE, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

}  // namespace

std::vector<std::string> expand_files(const std::vector<std::string>& files) {
  std::vector<std::string> expanded;
  for (const std::string& file : files) {
    std::error_code code;
    const size_t before = expanded.size();
    if (fs::is_directory(file, code)) {
      add_pictures(file, expanded);
      if (expanded.size() == before)
        fail(ErrorKind::usage, "the folder '{}' holds no JPEG, PNG, PPM or PGM pictures; name others", file);
    } else if (file.find_first_of("*?[") != file.npos && file.find(':') == file.npos && !fs::exists(file, code)) {
      const std::vector<std::string> matches = matches_of(file);
      if (matches.empty()) fail(ErrorKind::usage, "no file matches '{}'", file);
      expanded.insert(expanded.end(), matches.begin(), matches.end());
    } else {
      expanded.push_back(file);
    }
  }
  return expanded;
}

}  // namespace weft::infer
