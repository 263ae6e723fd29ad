// The part of cluster.toml that says where links between hosts differ: [[groups]] and [[links]].
#pragma once

#include <toml++/toml.h>

#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/links/links.h"

namespace weft::comm {

/// By which files name hosts: their names, with #1, #2... behind one that several have.
std::vector<std::string> labels_of(std::vector<std::string> names);
/// Of the group's hosts, by number.
std::vector<std::string> labels_of(const Communicator& communicator);

/// Empty where there is nothing to say. `labels`: of hosts by number.
std::string topology_text(const Topology& topology, const std::vector<std::string>& labels);

/// With the names of its hosts, whose numbers are those of the file's [[hosts]]. Error(data) naming host or key where a
/// host is unknown, in two groups or in none, a pair is given twice, or a number is none.
Topology read_topology(const toml::table& file, const std::string& path);

/// Two hosts of whose link neither a group nor a pair says anything; an empty text where there are none.
std::string find_missing_pair(const Topology& topology);

/// For the hosts of the communicator, in their numbers; what is said of others is left out. Error(data) where one of
/// them is not named.
Topology for_hosts_of(const Communicator& communicator, const Topology& topology, const std::string& path);

}  // namespace weft::comm
