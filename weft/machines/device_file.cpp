// clang-format off
#include <cstdint>

#include "weft/base/toml.h"  // before what includes toml++ itself
// clang-format on

#include "weft/machines/device_file.h"

#include <algorithm>
#include <array>

#include "weft/machines/section_reader.h"

namespace weft::machines {

namespace {

constexpr std::array<std::string_view, 6> kArithmetic = {"f32", "tf32", "f16", "bf16", "f8", "i8"};
constexpr std::array<std::string_view, 4> kWork = {"convolution", "matrix_product", "attention", "memory"};
constexpr const char* kDataSheet = "take it from the data sheet, or begin with a file that comes with weft";

Efficiency efficiency_of(const toml::table* all, WorkClass work, const std::string& path) {
  const std::string name(name_of(work));
  const toml::node* const node = all == nullptr ? nullptr : all->get(name);
  SectionReader section(node == nullptr ? nullptr : node->as_table(), path, "efficiency." + name);
  const char* const next = "the share of the rate that large work of this class reaches, such as 0.7";
  Efficiency efficiency{.best = section.positive("best", next)};
  if (efficiency.best > 1) section.wrong("best", "is a share of the peak, at most 1", next);
  const bool is_memory = work == WorkClass::memory;
  const char* const size = is_memory ? "half_megabytes" : "half_gigaflop";
  efficiency.half_size =
      section.at_least_zero_or(size, 0, "the work that reaches half of it") * (is_memory ? 1e6 : 1e9);
  if (work == WorkClass::convolution || work == WorkClass::matrix_product) {
    efficiency.half_outputs = section.at_least_zero_or("half_outputs", 0, "outputs of half a wave of tiles");
    efficiency.half_depth = section.at_least_zero_or("half_depth", 0, "products per output that a tile takes to begin");
  }
  if (work == WorkClass::convolution) section.knows("winograd");
  section.refuse_others();
  return efficiency;
}

std::map<Arithmetic, double> peaks_of(const toml::table* table, const std::string& path) {
  SectionReader section(table, path, "teraflops");
  std::map<Arithmetic, double> peaks;
  for (size_t index = 0; index < kArithmetic.size(); ++index) {
    const char* const key = kArithmetic[index].data();
    if (section.has(key) || index == 0)
      peaks[static_cast<Arithmetic>(index)] = 1e12 * section.positive(key, kDataSheet);
    section.knows(key);
  }
  section.refuse_others();
  // Narrower units that are slower than f32 are a unit's error more often than a device.
  for (const Arithmetic narrow : {Arithmetic::tf32, Arithmetic::f16, Arithmetic::bf16, Arithmetic::f8})
    if (peaks.contains(narrow) && peaks[narrow] < 0.5 * peaks[Arithmetic::f32])
      section.wrong(name_of(narrow).data(), "contradicts f32, which is more than twice as fast",
                    "leave it away where the device computes in f32 then");
  return peaks;
}

std::vector<std::pair<double, double>> throttling_of(const toml::table* table, const std::string& path) {
  SectionReader section(table, path, "throttling");
  const std::vector<double> seconds = section.numbers("seconds", "seconds of full load, ascending"),
                            shares = section.numbers("rate", "shares of the rates from then on, in (0, 1]");
  section.refuse_others();
  if (seconds.size() != shares.size())
    section.wrong("rate", fmt::format("has {} numbers where throttling.seconds has {}", shares.size(), seconds.size()),
                  "give a rate for each");
  std::vector<std::pair<double, double>> curve;
  for (size_t index = 0; index < seconds.size(); ++index) {
    if (seconds[index] < 0 || (index > 0 && seconds[index] <= seconds[index - 1]))
      section.wrong("seconds", "has to ascend", "order it");
    if (!(shares[index] > 0) || shares[index] > 1) section.wrong("rate", "has to be of shares in (0, 1]", "");
    curve.emplace_back(seconds[index], shares[index]);
  }
  return curve;
}

}  // namespace

std::string_view name_of(Arithmetic arithmetic) { return kArithmetic[static_cast<size_t>(arithmetic)]; }

std::optional<Arithmetic> parse_arithmetic(std::string_view name) {
  const auto found = std::find(kArithmetic.begin(), kArithmetic.end(), name);
  if (found == kArithmetic.end()) return std::nullopt;
  return static_cast<Arithmetic>(found - kArithmetic.begin());
}

int64_t bytes_of(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::f32:
    case Arithmetic::tf32:
      return 4;
    case Arithmetic::f16:
    case Arithmetic::bf16:
      return 2;
    default:
      return 1;
  }
}

std::string_view name_of(WorkClass work) { return kWork[static_cast<size_t>(work)]; }

double DeviceFile::peak(Arithmetic arithmetic) const {
  const auto rate = [&](Arithmetic other) {
    const auto found = peak_flops.find(other);
    return found == peak_flops.end() ? 0.0 : found->second;
  };
  if (rate(arithmetic) > 0) return rate(arithmetic);
  const double f32 = rate(Arithmetic::f32);
  // f16 and bf16 stand in for each other; what is narrower than the units is widened first.
  const double half = std::max(rate(Arithmetic::f16), rate(Arithmetic::bf16));
  if (arithmetic == Arithmetic::tf32 || half == 0) return f32;
  return std::max(half, f32);
}

double DeviceFile::rate_share(double seconds_of_load) const {
  double share = 1;
  for (const auto& [seconds, rate] : throttling)
    if (seconds_of_load >= seconds) share = rate;
  return share;
}

DeviceFile parse_device(std::string_view text, const std::string& path) {
  const toml::table file = parse_machine_file(text, path);
  SectionReader top(&file, path, "");
  for (const char* key : {"name", "memory_gigabytes", "memory_gigabytes_per_second", "launch_us", "teraflops",
                          "efficiency", "watts", "throttling"})
    top.knows(key);
  top.refuse_others();
  DeviceFile device;
  device.name = top.text_or("name", path);
  device.peak_flops = peaks_of(section_of(file, "teraflops", path), path);
  device.memory_bytes = 1e9 * top.positive("memory_gigabytes", kDataSheet);
  device.bytes_per_second = 1e9 * top.positive("memory_gigabytes_per_second", kDataSheet);
  device.launch_seconds =
      1e-6 * top.positive("launch_us", "the time of a kernel however small, 2 to 10 on accelerators");
  const toml::table* const efficiency = section_of(file, "efficiency", path);
  for (size_t index = 0; index < kWork.size(); ++index)
    device.efficiency[static_cast<WorkClass>(index)] = efficiency_of(efficiency, static_cast<WorkClass>(index), path);
  const toml::node* const convolution = efficiency->get("convolution");
  SectionReader of_convolution(convolution->as_table(), path, "efficiency.convolution");
  device.winograd = of_convolution.positive_or("winograd", 1, "1 where there are no such kernels");
  if (device.winograd < 1) of_convolution.wrong("winograd", "has to be 1 or more", "2.25 is the algorithm's own");
  SectionReader classes(efficiency, path, "efficiency");
  for (const std::string_view work : kWork) classes.knows(work.data());
  classes.refuse_others();
  SectionReader watts(section_of(file, "watts", path), path, "watts");
  device.idle_watts = watts.at_least_zero_or("idle", 0, kDataSheet);
  device.peak_watts = watts.at_least_zero_or("peak", 0, kDataSheet);
  watts.refuse_others();
  if (device.idle_watts > device.peak_watts) watts.wrong("idle", "contradicts watts.peak, which is less", kDataSheet);
  device.throttling = throttling_of(section_of(file, "throttling", path), path);
  return device;
}

std::string print_device(const DeviceFile& device) {
  std::string text = fmt::format(
      "name = \"{}\"\nmemory_gigabytes = {}\nmemory_gigabytes_per_second = {}\nlaunch_us = {}\n\n[teraflops]\n",
      device.name, device.memory_bytes / 1e9, device.bytes_per_second / 1e9, device.launch_seconds / 1e-6);
  for (const auto& [arithmetic, rate] : device.peak_flops)
    text += fmt::format("{} = {}\n", name_of(arithmetic), rate / 1e12);
  for (const auto& [work, efficiency] : device.efficiency) {
    const bool is_memory = work == WorkClass::memory;
    text += fmt::format("\n[efficiency.{}]\nbest = {}\n{} = {}\n", name_of(work), efficiency.best,
                        is_memory ? "half_megabytes" : "half_gigaflop", efficiency.half_size / (is_memory ? 1e6 : 1e9));
    if (efficiency.half_outputs > 0) text += fmt::format("half_outputs = {}\n", efficiency.half_outputs);
    if (efficiency.half_depth > 0) text += fmt::format("half_depth = {}\n", efficiency.half_depth);
    if (work == WorkClass::convolution && device.winograd != 1) text += fmt::format("winograd = {}\n", device.winograd);
  }
  if (device.peak_watts > 0)
    text += fmt::format("\n[watts]\nidle = {}\npeak = {}\n", device.idle_watts, device.peak_watts);
  if (device.throttling.empty()) return text;
  std::string seconds, shares;
  for (const auto& [at, share] : device.throttling) {
    seconds += fmt::format("{}{}", seconds.empty() ? "" : ", ", at);
    shares += fmt::format("{}{}", shares.empty() ? "" : ", ", share);
  }
  return text + fmt::format("\n[throttling]\nseconds = [{}]\nrate = [{}]\n", seconds, shares);
}

}  // namespace weft::machines
