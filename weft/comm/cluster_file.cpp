// cluster.toml: what `weft cluster probe` measured, as people read it.
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/comm/measure.h"

namespace weft::comm {

namespace {

std::string link_text(const char* name, const LinkCosts& link) {
  return fmt::format("[{}]\nlatency_us = {:.4g}\nmessage_us = {:.4g}\nmegabytes_per_second = {:.6g}\n\n", name,
                     link.latency_seconds * 1e6, link.message_seconds * 1e6, link.bytes_per_second / 1e6);
}

double number(const toml::table& file, const std::string& path, const char* section, const char* key) {
  const std::optional<double> value = file[section][key].value<double>();
  if (!value || !(*value >= 0) || std::isinf(*value))
    fail(ErrorKind::data, "'{}': {}.{} has to be a number, 0 or above; `weft cluster probe` writes such a file", path,
         section, key);
  return *value;
}

double positive(const toml::table& file, const std::string& path, const char* section, const char* key) {
  const double value = number(file, path, section, key);
  if (value == 0)
    fail(ErrorKind::data, "'{}': {}.{} has to be above 0; `weft cluster probe` writes such a file", path, section, key);
  return value;
}

LinkCosts link_of(const toml::table& file, const std::string& path, const char* section) {
  return {.latency_seconds = number(file, path, section, "latency_us") * 1e-6,
          .bytes_per_second = positive(file, path, section, "megabytes_per_second") * 1e6,
          .message_seconds = number(file, path, section, "message_us") * 1e-6};
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
    if (!value || !(*value > 0)) fail(ErrorKind::data, "'{}': mpi.{} has to be of numbers above 0", path, key);
    seconds.push_back(*value * 1e-6);
  }
  return seconds;
}

NativeCosts native_of(const toml::table& file, const std::string& path) {
  NativeCosts costs;
  if (!file["mpi"]) return costs;
  const std::vector<double> all = native_list(file, path, "all_reduce_us"), own = native_list(file, path, "weft_us");
  if (all.size() != own.size())
    fail(ErrorKind::data, "'{}': mpi.all_reduce_us and mpi.weft_us have to be of the same sizes, {} and {} are given",
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
      "# A message between hosts: a link is busy for its bytes, at least message_us; latency_us later it is there.\n"
      "# Of the slowest link of the first host.\n" +
      link_text("between_hosts", costs.between_hosts);
  text += "# A message within a host.\n" + link_text("in_host", costs.in_host);
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
  const size_t begin = text.find(kHostsBegin);
  return begin != std::string::npos && text.substr(begin) == hosts_text(communicator);
}

ClusterCosts parse_cluster(const std::string& text, const std::string& path) {
  toml::table file;
  try {
    file = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::data, "'{}', line {}: {}", path, error.source().begin.line, std::string(error.description()));
  }
  return {.between_hosts = link_of(file, path, "between_hosts"),
          .in_host = link_of(file, path, "in_host"),
          .summed_bytes_per_second = positive(file, path, "memory", "summed_megabytes_per_second") * 1e6,
          .shared_bytes_per_second = positive(file, path, "memory", "shared_megabytes_per_second") * 1e6,
          .native = native_of(file, path)};
}

}  // namespace weft::comm
