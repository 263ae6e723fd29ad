#include "weft/device/kernel_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/isa.h"
#include "weft/base/version.h"

namespace weft {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kFormat = 1;

std::string checksum(std::string_view text) { return fmt::format("{:08x}", crc32_of(text.data(), text.size())); }

/// Held until the result dies.
std::shared_ptr<void> lock_directory(const fs::path& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorKind::io, "cannot open '{}'; check its permissions", directory.string());
  std::shared_ptr<void> held(nullptr, [descriptor](void*) { close(descriptor); });
  while (flock(descriptor, LOCK_EX) != 0 && errno == EINTR) continue;
  return held;
}

std::vector<KernelTime> times_from(const json& rows) {
  std::vector<KernelTime> times;
  for (const json& row : rows) times.push_back({row.at(0).get<std::string>(), row.at(1).get<double>()});
  return times;
}

}  // namespace

std::string print_kernel_times(const KernelTimes& times, const std::string& machine) {
  std::string lines;
  for (const auto& [node, kernels] : times) {
    json rows = json::array();
    for (const KernelTime& time : kernels) rows.push_back({time.kernel, time.seconds});
    lines += json{{"node", node}, {"kernels", rows}}.dump() + "\n";
  }
  const json head = {{"format", kFormat}, {"machine", machine}, {"nodes", times.size()}, {"crc32", checksum(lines)}};
  return head.dump() + "\n" + lines;
}

KernelTimes parse_kernel_times(std::string_view text, const std::string& machine) {
  const size_t end = text.find('\n');
  const std::string_view lines = end == text.npos ? std::string_view() : text.substr(end + 1);
  try {
    const json head = json::parse(text.substr(0, end));
    if (head.at("format").get<int>() != kFormat)
      fail(ErrorKind::data, "it has format {}, this weft reads format {}", head.at("format").get<int>(), kFormat);
    if (head.at("machine").get<std::string>() != machine)
      fail(ErrorKind::data, "it is of another machine, {}", head.at("machine").get<std::string>());
    if (head.at("crc32").get<std::string>() != checksum(lines))
      fail(ErrorKind::data, "it is damaged: not all is there");
    KernelTimes times;
    for (size_t begin = 0; begin < lines.size();) {
      const size_t line_end = std::min(lines.find('\n', begin), lines.size());
      const json row = json::parse(lines.substr(begin, line_end - begin));
      begin = line_end + 1;
      std::vector<KernelTime> kernels = times_from(row.at("kernels"));
      if (!kernels.empty()) times[row.at("node").get<std::string>()] = std::move(kernels);
    }
    return times;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "it is damaged: it does not hold times of kernels");
  }
}

KernelCache::KernelCache(const fs::path& directory, std::string machine)
    : machine_(std::move(machine)), file_(directory / fmt::format("kernels-{}.jsonl", checksum(machine_))) {}

fs::path KernelCache::standard_directory() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  if (const std::string given = value("WEFT_CACHE_DIR"); !given.empty()) return given;
  if (const std::string given = value("XDG_CACHE_HOME"); given.starts_with("/")) return fs::path(given) / "weft";
  if (const std::string home = value("HOME"); !home.empty()) return fs::path(home) / ".cache" / "weft";
  fail(ErrorKind::usage, "there is no place for measured times of kernels: HOME is not set; set WEFT_CACHE_DIR");
}

KernelTimes KernelCache::read(const Note& note) const {
  std::error_code code;
  if (!fs::exists(file_, code)) return {};
  try {
    return parse_kernel_times(read_text(file_), machine_);
  } catch (const Error& error) {
    note(fmt::format("the times of kernels in '{}' are not used: {}", file_.string(), error.what()));
    return {};
  }
}

void KernelCache::add(const KernelTimes& times) const {
  make_directories(file_.parent_path());
  const std::shared_ptr<void> lock = lock_directory(file_.parent_path());
  KernelTimes all = read([](const std::string&) {});
  for (const auto& [node, kernels] : times) all[node] = kernels;
  write_atomically(file_, print_kernel_times(all, machine_));
}

}  // namespace weft
