#include "weft/device/machine_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"

namespace weft {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string checksum(std::string_view text) { return fmt::format("{:08x}", crc32_of(text.data(), text.size())); }

}  // namespace

std::string print_machine_file(int format, const std::string& machine, size_t rows, const std::string& lines) {
  const json head = {{"format", format}, {"machine", machine}, {"nodes", rows}, {"crc32", checksum(lines)}};
  return head.dump() + "\n" + lines;
}

std::string_view rows_of_machine_file(std::string_view text, int format, const std::string& machine) {
  const size_t end = text.find('\n');
  const std::string_view lines = end == text.npos ? std::string_view() : text.substr(end + 1);
  const json head = json::parse(text.substr(0, end), nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&](const char* key) {
    return head.is_object() && head.contains(key) && head[key].is_string() ? head[key].get<std::string>() : "";
  };
  if (!head.is_object() || !head.contains("format") || !head["format"].is_number_integer() ||
      text_of("machine").empty() || text_of("crc32").empty())
    fail(ErrorKind::data, "it is damaged: it does not hold times of kernels");
  if (head["format"].get<int>() != format)
    fail(ErrorKind::data, "it has format {}, this weft reads format {}", head["format"].get<int>(), format);
  if (text_of("machine") != machine) fail(ErrorKind::data, "it is of another machine, {}", text_of("machine"));
  if (text_of("crc32") != checksum(lines)) fail(ErrorKind::data, "it is damaged: not all is there");
  return lines;
}

std::string name_of_machine_file(std::string_view kind, const std::string& machine) {
  return fmt::format("{}-{}.jsonl", kind, checksum(machine));
}

std::shared_ptr<void> lock_machine_files(const fs::path& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorKind::io, "cannot open '{}'; check its permissions", directory.string());
  std::shared_ptr<void> held(nullptr, [descriptor](void*) { close(descriptor); });
  while (flock(descriptor, LOCK_EX) != 0 && errno == EINTR) continue;
  return held;
}

fs::path directory_of_machine_files() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  if (const std::string given = value("WEFT_CACHE_DIR"); !given.empty()) return given;
  if (const std::string given = value("XDG_CACHE_HOME"); given.starts_with("/")) return fs::path(given) / "weft";
  if (const std::string home = value("HOME"); !home.empty()) return fs::path(home) / ".cache" / "weft";
  fail(ErrorKind::usage, "there is no place for measured times of kernels: HOME is not set; set WEFT_CACHE_DIR");
}

}  // namespace weft
