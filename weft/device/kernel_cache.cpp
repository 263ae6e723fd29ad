#include "weft/device/kernel_cache.h"

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/device/machine_file.h"

namespace weft {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kFormat = 1;

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
  return print_machine_file(kFormat, machine, times.size(), lines);
}

KernelTimes parse_kernel_times(std::string_view text, const std::string& machine) {
  const std::string_view lines = rows_of_machine_file(text, kFormat, machine);
  try {
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
    : machine_(std::move(machine)), file_(directory / name_of_machine_file("kernels", machine_)) {}

fs::path KernelCache::standard_directory() { return directory_of_machine_files(); }

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
  const std::shared_ptr<void> lock = lock_machine_files(file_.parent_path());
  KernelTimes all = read([](const std::string&) {});
  for (const auto& [node, kernels] : times) all[node] = kernels;
  write_atomically(file_, print_kernel_times(all, machine_));
}

}  // namespace weft
