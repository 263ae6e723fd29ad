#include "weft/comm/measure/topology_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "weft/base/error.h"
#include "weft/comm/links/cluster_numbers.h"

namespace weft::comm {

namespace {

constexpr const char* kUplink = "uplink_megabytes_per_second";

std::string quoted(const std::vector<int>& hosts, const std::vector<std::string>& labels) {
  std::string text;
  for (const int host : hosts)
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", labels[static_cast<size_t>(host)]);
  return "[" + text + "]";
}

std::vector<std::string> hosts_of(const toml::table& file, const std::string& path) {
  std::vector<std::string> names;
  const toml::array* const hosts = file["hosts"].as_array();
  for (size_t index = 0; hosts != nullptr && index < hosts->size(); ++index) {
    const toml::table* const host = (*hosts)[index].as_table();
    const std::optional<std::string> name = host == nullptr ? std::nullopt : (*host)["name"].value<std::string>();
    if (!name) fail(ErrorKind::data, "'{}': hosts[{}] has no name", path, index);
    names.push_back(*name);
  }
  return labels_of(std::move(names));
}

class Reader {
 public:
  Reader(const std::string& path, std::vector<std::string> hosts) : path_(path), hosts_(std::move(hosts)) {}

  int host(const toml::node& node, const std::string& where) const {
    const std::optional<std::string> name = node.value<std::string>();
    if (!name) fail(ErrorKind::data, "'{}': {} has to be a list of names of hosts", path_, where);
    const auto found = std::find(hosts_.begin(), hosts_.end(), *name);
    if (found == hosts_.end())
      fail(ErrorKind::data, "'{}': {} names a host '{}' that [[hosts]] does not have: they are {}", path_, where, *name,
           fmt::join(hosts_, ", "));
    return static_cast<int>(found - hosts_.begin());
  }

  Topology::Group group(const toml::table* table, const std::string& name) const {
    const toml::array* const hosts = table == nullptr ? nullptr : (*table)["hosts"].as_array();
    if (hosts == nullptr || hosts->empty())
      fail(ErrorKind::data, "'{}': {}.hosts has to be a list of names of hosts", path_, name);
    Topology::Group group;
    for (const toml::node& node : *hosts) group.hosts.push_back(host(node, name + ".hosts"));
    std::sort(group.hosts.begin(), group.hosts.end());
    if ((*table)["latency_us"] || (*table)["message_us"] || (*table)["megabytes_per_second"])
      group.within = link_of(table, path_, name);
    if ((*table)[kUplink]) group.uplink_bytes_per_second = positive_of(table, path_, name, kUplink) * 1e6;
    return group;
  }

  std::vector<Topology::Pair> pairs(const toml::table* table, const std::string& name) const {
    const LinkCosts costs = link_of(table, path_, name);
    const toml::array* const all = (*table)["pairs"].as_array();
    if (all == nullptr) fail(ErrorKind::data, "'{}': {}.pairs has to be a list of pairs of hosts", path_, name);
    std::vector<Topology::Pair> pairs;
    for (const toml::node& node : *all) {
      const toml::array* const pair = node.as_array();
      if (pair == nullptr || pair->size() != 2)
        fail(ErrorKind::data, "'{}': {}.pairs has to be a list of pairs, [\"a\", \"b\"], of hosts", path_, name);
      const int a = host((*pair)[0], name + ".pairs"), b = host((*pair)[1], name + ".pairs");
      if (a == b)
        fail(ErrorKind::data, "'{}': {}.pairs has a link of '{}' to itself", path_, name,
             hosts_[static_cast<size_t>(a)]);
      pairs.push_back({std::min(a, b), std::max(a, b), costs});
    }
    return pairs;
  }

  /// Where hosts are in one group each, and a pair is given once, in one of its two directions.
  void check_all(const Topology& topology) const {
    std::map<int, int> groups;
    for (const Topology::Group& group : topology.groups)
      for (const int host : group.hosts)
        if (++groups[host] > 1)
          fail(ErrorKind::data, "'{}': host '{}' is in two of [[groups]]", path_, hosts_[static_cast<size_t>(host)]);
    for (size_t host = 0; !topology.groups.empty() && host < hosts_.size(); ++host)
      if (!groups.contains(static_cast<int>(host)))
        fail(ErrorKind::data, "'{}': host '{}' is in none of [[groups]]; give it one of its own", path_, hosts_[host]);
    std::set<std::pair<int, int>> pairs;
    for (const Topology::Pair& pair : topology.pairs)
      if (!pairs.insert({pair.first, pair.second}).second)
        fail(ErrorKind::data,
             "'{}': the link between '{}' and '{}' is given twice in [[links]]; a link is the same in both directions",
             path_, hosts_[static_cast<size_t>(pair.first)], hosts_[static_cast<size_t>(pair.second)]);
  }

 private:
  const std::string& path_;
  const std::vector<std::string> hosts_;
};

const toml::array* tables_of(const toml::table& file, const char* name, const std::string& path) {
  const toml::node* const node = file.get(name);
  if (node == nullptr) return nullptr;
  const toml::array* const tables = node->as_array();
  if (tables == nullptr) fail(ErrorKind::data, "'{}': write [[{}]], one for each", path, name);
  return tables;
}

}  // namespace

std::vector<std::string> labels_of(std::vector<std::string> names) {
  std::map<std::string, int> count, seen;
  for (const std::string& name : names) ++count[name];
  for (std::string& name : names)
    if (count[name] > 1) name += fmt::format("#{}", ++seen[name]);
  return names;
}

std::vector<std::string> labels_of(const Communicator& communicator) {
  std::vector<std::string> names;
  for (const Member& member : communicator.members()) {
    const auto host = static_cast<size_t>(member.host_index);
    if (host >= names.size()) names.resize(host + 1);
    names[host] = member.host;
  }
  return labels_of(std::move(names));
}

std::string topology_text(const Topology& topology, const std::vector<std::string>& labels) {
  std::string text;
  if (!topology.groups.empty())
    text +=
        "\n# Hosts behind a switch: links between two of them, where they are not as above, and what all of them "
        "together\n"
        "# can send to the others, and get from them.\n";
  for (size_t index = 0; index < topology.groups.size(); ++index) {
    const Topology::Group& group = topology.groups[index];
    text += fmt::format("{}[[groups]]\nhosts = {}\n", index == 0 ? "" : "\n", quoted(group.hosts, labels));
    if (group.uplink_bytes_per_second != kUnlimited)
      text += fmt::format("{} = {:.6g}\n", kUplink, group.uplink_bytes_per_second / 1e6);
    if (group.within) text += link_text(*group.within);
  }
  if (topology.pairs.empty()) return text;
  text += "\n# Links that are neither of these.\n";
  std::vector<Topology::Pair> left = topology.pairs;
  for (bool is_first = true; !left.empty(); is_first = false) {
    const LinkCosts costs = left.front().costs;
    std::string pairs;
    for (const Topology::Pair& pair : left)
      if (pair.costs == costs)
        pairs += fmt::format("{}{}", pairs.empty() ? "" : ", ", quoted({pair.first, pair.second}, labels));
    std::erase_if(left, [&](const Topology::Pair& pair) { return pair.costs == costs; });
    text += fmt::format("{}[[links]]\n{}pairs = [{}]\n", is_first ? "" : "\n", link_text(costs), pairs);
  }
  return text;
}

Topology read_topology(const toml::table& file, const std::string& path) {
  const toml::array *const groups = tables_of(file, "groups", path), *const links = tables_of(file, "links", path);
  Topology topology;
  if (groups == nullptr && links == nullptr) return topology;
  topology.hosts = hosts_of(file, path);
  if (topology.hosts.empty())
    fail(ErrorKind::data, "'{}': [[groups]] and [[links]] need the names of all hosts, in [[hosts]]", path);
  const Reader reader(path, topology.hosts);
  for (size_t index = 0; groups != nullptr && index < groups->size(); ++index)
    topology.groups.push_back(reader.group((*groups)[index].as_table(), fmt::format("groups[{}]", index)));
  for (size_t index = 0; links != nullptr && index < links->size(); ++index) {
    const std::vector<Topology::Pair> pairs = reader.pairs((*links)[index].as_table(), fmt::format("links[{}]", index));
    topology.pairs.insert(topology.pairs.end(), pairs.begin(), pairs.end());
  }
  reader.check_all(topology);
  return topology;
}

std::string find_missing_pair(const Topology& topology) {
  std::set<std::pair<int, int>> known;
  for (const Topology::Pair& pair : topology.pairs) known.insert({pair.first, pair.second});
  for (const Topology::Group& group : topology.groups)
    for (size_t a = 0; group.within && a < group.hosts.size(); ++a)
      for (size_t b = a + 1; b < group.hosts.size(); ++b) known.insert({group.hosts[a], group.hosts[b]});
  for (size_t a = 0; a < topology.hosts.size(); ++a)
    for (size_t b = a + 1; b < topology.hosts.size(); ++b)
      if (!known.contains({static_cast<int>(a), static_cast<int>(b)}))
        return fmt::format("'{}' and '{}'", topology.hosts[a], topology.hosts[b]);
  return "";
}

Topology for_hosts_of(const Communicator& communicator, const Topology& topology, const std::string& path) {
  Topology mine;
  if (topology.is_empty()) return mine;
  const std::vector<std::string> labels = labels_of(communicator);
  std::vector<int> number(topology.hosts.size(), -1);  // here, of the file's
  for (size_t host = 0; host < labels.size(); ++host) {
    const auto found = std::find(topology.hosts.begin(), topology.hosts.end(), labels[host]);
    if (found == topology.hosts.end())
      fail(ErrorKind::data,
           "'{}' says nothing of host '{}', only of {}: measure these hosts with `weft cluster probe`, or take "
           "[[groups]] "
           "and [[links]] out of it",
           path, labels[host], fmt::join(topology.hosts, ", "));
    number[static_cast<size_t>(found - topology.hosts.begin())] = static_cast<int>(host);
  }
  for (const Topology::Group& theirs : topology.groups) {
    Topology::Group group{
        .hosts = {}, .within = theirs.within, .uplink_bytes_per_second = theirs.uplink_bytes_per_second};
    for (const int host : theirs.hosts)
      if (number[static_cast<size_t>(host)] >= 0) group.hosts.push_back(number[static_cast<size_t>(host)]);
    std::sort(group.hosts.begin(), group.hosts.end());
    if (!group.hosts.empty()) mine.groups.push_back(std::move(group));
  }
  for (const Topology::Pair& pair : topology.pairs) {
    const int a = number[static_cast<size_t>(pair.first)], b = number[static_cast<size_t>(pair.second)];
    if (a >= 0 && b >= 0) mine.pairs.push_back({std::min(a, b), std::max(a, b), pair.costs});
  }
  return mine;
}

}  // namespace weft::comm
