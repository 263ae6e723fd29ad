// cluster.toml: what `weft cluster probe` measured, as people read it.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/seal.h"
#include "weft/base/toml.h"
#include "weft/comm/links/cluster_numbers.h"
#include "weft/comm/measure/measure.h"
#include "weft/comm/measure/topology_file.h"

namespace weft::comm {

namespace {

std::string section_text(const char* name, const LinkCosts& link) {
  return fmt::format("[{}]\n{}", name, link_text(link));
}

std::vector<double> native_list(const toml::table& file, const std::string& path, const char* key) {
  const toml::array* const all = file["mpi"][key].as_array();
  std::vector<double> seconds;
  if (all == nullptr || all->size() > NativeCosts{}.seconds.size())
    fail(ErrorKind::data,
         "'{}': mpi.{} has to be a list of at most {} numbers; `weft cluster probe` writes such a file", path, key,
         NativeCosts{}.seconds.size());
  for (const toml::node& item : *all) {
    const std::optional<double> value = item.value<double>();
    if (!value || !(*value > 0))
      fail(ErrorKind::data, "'{}': mpi.{} has to be of numbers above 0; `weft cluster probe` writes such a file", path,
           key);
    seconds.push_back(*value * 1e-6);
  }
  return seconds;
}

NativeCosts native_of(const toml::table& file, const std::string& path) {
  NativeCosts costs;
  if (!file["mpi"]) return costs;
  const std::vector<double> all = native_list(file, path, "all_reduce_us"), own = native_list(file, path, "weft_us");
  if (all.size() != own.size())
    fail(ErrorKind::data,
         "'{}': mpi.all_reduce_us and mpi.weft_us have to be of the same sizes, {} and {} are given; `weft cluster "
         "probe` writes such a file",
         path, all.size(), own.size());
  std::copy(all.begin(), all.end(), costs.seconds.begin());
  std::copy(own.begin(), own.end(), costs.own_seconds.begin());
  return costs;
}

std::string native_text(const std::array<double, 6>& all) {
  std::string text;
  for (const double seconds : all)
    if (seconds > 0) text += fmt::format("{}{:.4g}", text.empty() ? "" : ", ", seconds * 1e6);
  return text;
}

constexpr const char* kHostsBegin = "\n[[hosts]]\n";

/// The last part of the file.
std::string hosts_text(const Communicator& communicator) {
  std::string text;
  int host = -1, ranks = 0;
  std::string name;
  const auto close = [&] {
    if (host >= 0) text += fmt::format("{}name = \"{}\"\nranks = {}\n", kHostsBegin, name, ranks);
  };
  for (int index = 0; index < communicator.size(); ++index) {
    close();
    host = -1;
    ranks = 0;
    for (const Member& member : communicator.members()) {
      if (member.host_index != index) continue;
      host = index;
      name = member.host;
      ++ranks;
    }
  }
  close();
  return text;
}

}  // namespace

std::string cluster_text(const Communicator& communicator, const ClusterCosts& costs) {
  std::string text =
      "# What collectives cost here, as `weft cluster probe` measured it. All may be changed by hand.\n\n";
  text +=
      "# A message between two hosts: their link is busy for its bytes, at least message_us; latency_us later it is "
      "there.\n" +
      section_text("between_hosts", costs.between_hosts) + topology_text(costs.topology, labels_of(communicator));
  text += "\n# A message within a host.\n" + section_text("in_host", costs.in_host) + "\n";
  text += fmt::format(
      "[memory]\n# All-reduced in memory that ranks share, all ranks of a host at once: bytes of one rank's operands.\n"
      "shared_megabytes_per_second = {:.6g}\n# Summed by one thread, in a near cache.\nsummed_megabytes_per_second = "
      "{:.6g}\n",
      costs.shared_bytes_per_second / 1e6, costs.summed_bytes_per_second / 1e6);
  if (costs.native.seconds[0] > 0)
    text += fmt::format(
        "\n# An all-reduce of 1 kB, 4 kB, 16 kB...: MPI's own and the best of weft's, measured in turn, each rank on a "
        "host of\n# its own. MPI's is taken where it is faster; without this section it never is.\n[mpi]\n"
        "all_reduce_us = [{}]\nweft_us = [{}]\n",
        native_text(costs.native.seconds), native_text(costs.native.own_seconds));
  return text + hosts_text(communicator);
}

ClusterCosts read_cluster_file(const std::string& path) { return parse_cluster(read_text(path), path); }

bool is_of_same_hosts(const std::string& text, const Communicator& communicator) {
  const std::string_view whole = without_seal(text);
  const size_t begin = whole.find(kHostsBegin);
  return begin != whole.npos && whole.substr(begin) == hosts_text(communicator);
}

ClusterCosts parse_cluster(const std::string& text, const std::string& path) {
  toml::table file;
  try {
    file = parse_toml(text, path);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::data, "'{}', line {}: {}", path, error.source().begin.line, std::string(error.description()));
  }
  const toml::table* const memory = file["memory"].as_table();
  ClusterCosts costs;
  costs.topology = read_topology(file, path);
  if (file["between_hosts"] || costs.topology.is_empty())
    costs.between_hosts = link_of(file["between_hosts"].as_table(), path, "between_hosts");
  else if (const std::string missing = find_missing_pair(costs.topology); !missing.empty())
    fail(ErrorKind::data,
         "'{}' has no link between {}: add one to [[links]], or give [between_hosts], which is of all that are not "
         "named",
         path, missing);
  costs.in_host = link_of(file["in_host"].as_table(), path, "in_host");
  costs.summed_bytes_per_second = positive_of(memory, path, "memory", "summed_megabytes_per_second") * 1e6;
  costs.shared_bytes_per_second = positive_of(memory, path, "memory", "shared_megabytes_per_second") * 1e6;
  costs.native = native_of(file, path);
  return costs;
}

ClusterCosts parse_cluster(const std::string& text, const std::string& path, const Communicator& communicator) {
  ClusterCosts costs = parse_cluster(text, path);
  costs.topology = for_hosts_of(communicator, costs.topology, path);
  return costs;
}

}  // namespace weft::comm
