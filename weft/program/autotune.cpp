#include "weft/program/autotune.h"

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/seal.h"
#include "weft/device/kernel_cache.h"
#include "weft/program/chosen_kernels.h"

namespace weft::program {

using nlohmann::json;

namespace {

constexpr double kMostSeconds = 60;
constexpr const char* kKey = "measured_kernels";

void tell(const Note& note, const std::string& line) {
  if (note) note(line);
}

}  // namespace

Autotune parse_autotune(const std::string& text) {
  if (text == "off") return Autotune::off;
  if (text == "cached") return Autotune::cached;
  if (text == "measure") return Autotune::measure;
  fail(ErrorKind::usage, "--autotune '{}': choose one of: off, cached, measure", text);
}

Tuning tuning_of(const DeviceKind& kind, Autotune autotune, int64_t threads, const Note& note) {
  if (autotune == Autotune::off) return {};
  const KernelCache cache(KernelCache::standard_directory(), kind.describe_machine(static_cast<int>(threads)));
  return {.known = cache.read([&](const std::string& line) { tell(note, line); }),
          .budget_seconds = autotune == Autotune::measure ? kMostSeconds : 0,
          .note = note};
}

void keep_measured(const DeviceKind& kind, const Device& device, const Note& note) {
  const KernelTimes measured = device.measured();
  if (measured.empty()) return;
  const KernelCache cache(KernelCache::standard_directory(), kind.describe_machine(device.threads()));
  std::string kept = "'" + cache.file().string() + "' keeps that";
  try {
    cache.add(measured);
  } catch (const Error& error) {
    kept = fmt::format("it is not kept: {}", error.what());
  }
  tell(note, fmt::format("measured the kernels of {} kinds of nodes in {}; {}", measured.size(),
                         human_duration(device.measuring_seconds()), kept));
}

KernelTimes kernel_times_from(const json& nodes) {
  KernelTimes times;
  for (const auto& [node, kernels] : nodes.items())
    for (const json& kernel : kernels)
      times[node].push_back({kernel.at("kernel").get<std::string>(), kernel.at("seconds").get<double>()});
  return times;
}

json chosen_kernels_json(const Device& device) {
  json nodes = json::object();
  for (const auto& [node, kernels] : device.chosen())
    for (const KernelTime& time : kernels) nodes[node].push_back({{"kernel", time.kernel}, {"seconds", time.seconds}});
  return nodes;
}

Tuning tuning_of_plan(const std::filesystem::path& path, const Note& note) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return {};
  try {
    const json plan = json::parse(read_text(path));
    check_seal(plan, path.string());
    return {.known = kernel_times_from(plan.value(kKey, json::object()))};
  } catch (const json::exception&) {
    tell(note, fmt::format("'{}' is damaged: kernels are chosen without what the run had measured", path.string()));
    return {};
  }
}

}  // namespace weft::program
