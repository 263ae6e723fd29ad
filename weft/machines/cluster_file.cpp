// clang-format off
#include <cstdint>

#include "weft/base/toml.h"  // before what includes toml++ itself
// clang-format on

#include "weft/machines/cluster_file.h"

#include <algorithm>
#include <filesystem>

#include "weft/base/files.h"
#include "weft/machines/section_reader.h"
#include "weft/machines/shipped.h"

namespace weft::machines {

namespace {

constexpr double kMostFailures = 1;  // of a device in an hour
constexpr double kMostJitter = 1, kMostSlowFactor = 100;
constexpr int64_t kMostRanks = 10'000'000;
constexpr const char* kProbe = "measure it with `weft cluster probe`, or write what the link's maker says";

comm::LinkCosts link_of(SectionReader& section) {
  comm::LinkCosts link;
  link.latency_seconds = 1e-6 * section.positive("latency_us", kProbe);
  link.bytes_per_second = 1e6 * section.positive("megabytes_per_second", kProbe);
  link.message_seconds = 1e-6 * section.at_least_zero_or("message_us", 1, kProbe);
  return link;
}

std::vector<NetworkLevel> levels_of(const toml::table& file, const std::string& path, int hosts,
                                    double host_bytes_per_second) {
  std::vector<NetworkLevel> levels;
  const toml::node* const node = file.get("levels");
  if (node == nullptr) return levels;
  if (node->as_array() == nullptr) fail(ErrorKind::data, "'{}': write [[levels]], one for each", path);
  for (const toml::node& item : *node->as_array()) {
    const std::string name = fmt::format("levels[{}]", levels.size());
    SectionReader section(item.as_table(), path, name);
    NetworkLevel level;
    level.name = section.text_or("name", fmt::format("level {}", levels.size() + 1));
    level.hosts = section.count_or("hosts", 0, "how many hosts are in each");
    if (level.hosts == 0) section.missing("hosts", "write how many hosts share the uplink");
    level.uplink_bytes_per_second = 1e6 * section.positive("uplink_megabytes_per_second", kProbe);
    level.latency_seconds = 1e-6 * section.at_least_zero_or("latency_us", 0, kProbe);
    section.refuse_others();
    const int below = levels.empty() ? 1 : levels.back().hosts;
    if (level.hosts <= below || level.hosts % below != 0)
      section.wrong("hosts", fmt::format("contradicts the level below, whose units have {}", below),
                    "a unit holds whole units of the level below: write a multiple");
    const double of_hosts = static_cast<double>(level.hosts) * host_bytes_per_second;
    if (level.uplink_bytes_per_second > 1.0001 * of_hosts)
      section.wrong("uplink_megabytes_per_second", "is more than its hosts can send",
                    "leave the level away where the network does not limit them");
    levels.push_back(level);
  }
  if (!levels.empty() && levels.back().hosts > hosts)
    fail(ErrorKind::data, "'{}': levels[{}].hosts is {}, of {} hosts in all; leave the level away", path,
         levels.size() - 1, levels.back().hosts, hosts);
  return levels;
}

/// Of today's files: [[hosts]] with as many ranks on each.
void count_hosts(const toml::table& file, const std::string& path, ClusterFile& cluster) {
  const toml::node* const node = file.get("hosts");
  if (node == nullptr) return;
  if (node->as_array() == nullptr || node->as_array()->empty())
    fail(ErrorKind::data, "'{}': write [[hosts]], one for each, or machine.hosts = N", path);
  int ranks = 0;
  for (const toml::node& item : *node->as_array()) {
    SectionReader section(item.as_table(), path, "hosts");
    const int of_host = section.count_or("ranks", 1, "ranks of the host");
    if (ranks != 0 && ranks != of_host)
      section.wrong("ranks", "differs between hosts", "simulate the hosts that are alike");
    ranks = of_host;
  }
  const auto hosts = static_cast<int>(node->as_array()->size());
  if (cluster.hosts != 0 && cluster.hosts != hosts)
    fail(ErrorKind::data, "'{}': machine.hosts = {} contradicts [[hosts]], of which there are {}; keep one of them",
         path, cluster.hosts, hosts);
  if (cluster.devices_per_host != 0 && cluster.devices_per_host != ranks)
    fail(ErrorKind::data, "'{}': machine.devices_per_host = {} contradicts hosts.ranks = {}; keep one of them", path,
         cluster.devices_per_host, ranks);
  cluster.hosts = hosts;
  cluster.devices_per_host = ranks;
}

DeviceFile device_beside(const std::string& name, const std::string& path) {
  const std::filesystem::path beside = std::filesystem::path(path).parent_path() / (name + ".toml");
  std::error_code code;
  if (std::filesystem::is_regular_file(beside, code)) return parse_device(read_text(beside), beside.string());
  for (const ShippedFile& file : shipped_devices())
    if (file.name == name) return parse_device(file.text, "device " + name);
  std::vector<std::string> names;
  for (const ShippedFile& file : shipped_devices()) names.push_back(file.name);
  fail(ErrorKind::data, "'{}': there is no device '{}', neither as {} nor with weft{}", path, name, beside.string(),
       suggestion(name, names));
}

void read_machine(const toml::table& file, const std::string& path, ClusterFile& cluster) {
  SectionReader section(section_of(file, "machine", path), path, "machine");
  const std::string device = section.text_or("device", "");
  if (!device.empty()) cluster.device = device_beside(device, path);
  cluster.hosts = section.count_or("hosts", 0, "how many hosts can be had");
  cluster.devices_per_host = section.count_or("devices_per_host", 0, "how many devices a host has");
  cluster.adapters_per_host = section.count_or("adapters_per_host", 1, "how many network adapters a host has");
  cluster.cores_per_host = section.count_or("cores_per_host", 0, "how many cores a host has");
  cluster.host_memory_bytes = 1e9 * section.at_least_zero_or("memory_gigabytes", 0, "of a host");
  cluster.speeds = section.numbers("speeds", "one rate for each rank, such as [1, 1, 1, 0.5]");
  section.refuse_others();
  count_hosts(file, path, cluster);
  if (cluster.hosts == 0) section.missing("hosts", "write how many hosts can be had");
  if (cluster.devices_per_host == 0) cluster.devices_per_host = 1;
  if (const int64_t ranks = int64_t{cluster.hosts} * cluster.devices_per_host; ranks > kMostRanks)
    section.wrong("hosts", fmt::format("makes {} ranks, more than {}", ranks, kMostRanks), "write fewer hosts");
  if (!cluster.speeds.empty() && static_cast<int>(cluster.speeds.size()) != cluster.ranks())
    section.wrong("speeds", fmt::format("has {} numbers for {} ranks", cluster.speeds.size(), cluster.ranks()),
                  "write one for each");
  for (const double speed : cluster.speeds)
    if (!(speed > 0)) section.wrong("speeds", "has to be of numbers above 0", "");
}

void read_links(const toml::table& file, const std::string& path, ClusterFile& cluster) {
  if (const toml::table* const in_host = section_of(file, "in_host", path); in_host || cluster.devices_per_host > 1) {
    SectionReader section(in_host, path, "in_host");
    cluster.in_host = link_of(section);
    if (section.has("shared_megabytes_per_second"))
      cluster.in_host_shared_bytes_per_second = 1e6 * section.positive("shared_megabytes_per_second", kProbe);
    section.knows("shared_megabytes_per_second");
    section.refuse_others();
    if (cluster.in_host_shared_bytes_per_second < cluster.in_host.bytes_per_second)
      section.wrong("shared_megabytes_per_second", "is less than one device sends by itself",
                    "write what all devices send together");
  }
  const toml::table* const between = section_of(file, "between_hosts", path);
  if (between != nullptr || cluster.hosts > 1) {
    SectionReader section(between, path, "between_hosts");
    cluster.between_hosts = link_of(section);
    section.refuse_others();
  }
  const toml::table* const memory = section_of(file, "memory", path);
  cluster.summed_bytes_per_second =
      cluster.device ? cluster.device->bytes_per_second / 3 : 8e9;  // two read, one written
  SectionReader section(memory, path, "memory");
  cluster.summed_bytes_per_second =
      1e6 * section.positive_or("summed_megabytes_per_second", cluster.summed_bytes_per_second / 1e6, kProbe);
  section.knows("shared_megabytes_per_second");
  section.refuse_others();
}

void read_what_goes_wrong(const toml::table& file, const std::string& path, ClusterFile& cluster) {
  SectionReader price(section_of(file, "price", path), path, "price");
  cluster.price.per_host_hour = price.at_least_zero_or("per_host_hour", 0, "of one host");
  cluster.price.spot_per_host_hour = price.at_least_zero_or("spot_per_host_hour", 0, "of one host");
  cluster.price.currency = price.text_or("currency", "USD");
  cluster.price.date = price.text_or("date", "");
  price.refuse_others();
  if (cluster.price.per_host_hour > 0 && cluster.price.spot_per_host_hour > cluster.price.per_host_hour)
    price.wrong("spot_per_host_hour", "contradicts per_host_hour, which is less", "exchange them");
  SectionReader failures(section_of(file, "failures", path), path, "failures");
  Failures& f = cluster.failures;
  f.per_device_hour = failures.at_least_zero_or("per_device_hour", 0, "such as 2e-5: one in 50,000 device-hours");
  if (f.per_device_hour > kMostFailures)
    failures.wrong("per_device_hour", fmt::format("is above {:g}, so that no run would end", kMostFailures),
                   "write failures of one device in an hour, such as 2e-5");
  if (failures.has("spot_interruptions_per_host_hour"))
    f.spot_interruptions_per_host_hour =
        failures.at_least_zero_or("spot_interruptions_per_host_hour", 0, "of one host in an hour, such as 0.05");
  failures.knows("spot_interruptions_per_host_hour");
  f.restart_seconds = failures.at_least_zero_or("restart_seconds", f.restart_seconds, "until steps run again");
  f.repair_seconds = failures.at_least_zero_or("repair_seconds", f.repair_seconds, "until a host is there again");
  f.checkpoint_bytes_per_second =
      1e6 * failures.positive_or("checkpoint_megabytes_per_second", f.checkpoint_bytes_per_second / 1e6,
                                 "of each host, to where checkpoints lie");
  failures.refuse_others();
  SectionReader stragglers(section_of(file, "stragglers", path), path, "stragglers");
  Stragglers& s = cluster.stragglers;
  s.jitter = stragglers.at_least_zero_or("jitter", 0, "deviation of the logarithm of a step's time, such as 0.02");
  s.slow_share = stragglers.at_least_zero_or("slow_share", 0, "a share in [0, 1]");
  s.slow_factor = stragglers.positive_or("slow_factor", 1, "such as 1.2: a fifth more time");
  stragglers.refuse_others();
  if (s.jitter > kMostJitter)
    stragglers.wrong("jitter", fmt::format("is above {:g}", kMostJitter),
                     "write the deviation of the logarithm of a step's time, such as 0.02");
  if (s.slow_factor < 1 || s.slow_factor > kMostSlowFactor)
    stragglers.wrong("slow_factor", fmt::format("has to be in [1, {:g}]", kMostSlowFactor),
                     "write how much longer slow devices take, such as 1.2");
  if (s.slow_share > 1) stragglers.wrong("slow_share", "has to be in [0, 1]", "");
}

template <typename Parse>
auto read_named(const std::string& name, const char* what, const std::vector<ShippedFile>& shipped, Parse parse) {
  std::error_code code;
  if (std::filesystem::is_regular_file(name, code)) return parse(read_text(name), name);
  std::vector<std::string> names;
  for (const ShippedFile& file : shipped) {
    if (file.name == name) return parse(file.text, fmt::format("{} {}", what, name));
    names.push_back(file.name);
  }
  fail(ErrorKind::usage, "there is no file '{}', and no {} of this name comes with weft{}", name, what,
       suggestion(name, names));
}

}  // namespace

void require_interruptions(const ClusterFile& cluster) {
  if (cluster.price.spot_per_host_hour <= 0 || cluster.failures.spot_interruptions_per_host_hour) return;
  fail(ErrorKind::data,
       "'{}': failures.spot_interruptions_per_host_hour is missing beside price.spot_per_host_hour, so that spot "
       "machines "
       "would look as if nothing interrupted them; write it, such as 0.05, or remove the price",
       cluster.file);
}

ClusterFile parse_cluster(std::string_view text, const std::string& path) {
  const toml::table file = parse_machine_file(text, path);
  SectionReader top(&file, path, "");
  for (const char* section : {"machine", "hosts", "in_host", "between_hosts", "levels", "memory", "mpi", "groups",
                              "links", "price", "failures", "stragglers"})
    top.knows(section);
  ClusterFile cluster;
  cluster.file = path;
  cluster.name = top.text_or("name", std::filesystem::path(path).stem().string());
  top.refuse_others();
  read_machine(file, path, cluster);
  read_links(file, path, cluster);
  cluster.levels = levels_of(file, path, cluster.hosts, cluster.between_hosts.bytes_per_second);
  read_what_goes_wrong(file, path, cluster);
  return cluster;
}

ClusterFile read_cluster(const std::string& name) {
  return read_named(name, "cluster", shipped_clusters(), [&](const std::string& text, const std::string& path) {
    ClusterFile cluster = parse_cluster(text, path);
    if (cluster.name == "cluster " + name) cluster.name = name;  // one that comes with weft
    return cluster;
  });
}

DeviceFile read_device(const std::string& name) {
  return read_named(name, "device", shipped_devices(),
                    [](const std::string& text, const std::string& path) { return parse_device(text, path); });
}

std::vector<ClusterFile> read_clusters(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(directory, code)) {
    if (entry.path().extension() != ".toml") continue;
    const toml::table file = parse_machine_file(read_text(entry.path()), entry.path().string());
    if (file.contains("machine") || file.contains("hosts")) paths.push_back(entry.path().string());
  }
  if (paths.empty())
    fail(ErrorKind::usage,
         "'{}' holds no cluster files; copy some there that come with weft (machines/clusters in its data folder), or "
         "write one with `weft cluster probe`",
         directory);
  std::sort(paths.begin(), paths.end());
  std::vector<ClusterFile> clusters;
  for (const std::string& path : paths) clusters.push_back(read_cluster(path));
  return clusters;
}

}  // namespace weft::machines
