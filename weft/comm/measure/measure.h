// Measures what the costs of collectives follow from: links between hosts, memory within one, sums.
#pragma once

#include <string>

#include "weft/comm/communicator.h"
#include "weft/comm/links/cost.h"

namespace weft::comm {

/// All ranks call it; all get the same, in some seconds. What a group of one host cannot tell keeps its default.
ClusterCosts measure_cluster(Communicator& communicator);

/// As a TOML file, with what it was measured on. Read by read_cluster_file().
std::string cluster_text(const Communicator& communicator, const ClusterCosts& costs);
/// Error(io) where it cannot be read, Error(data) naming the line or the key where it is no such file.
ClusterCosts read_cluster_file(const std::string& path);
/// The same of the text of such a file, which errors call `path`. Hosts have the numbers that they have there.
ClusterCosts parse_cluster(const std::string& text, const std::string& path);
/// With what it says of links between hosts for those of the communicator, in their numbers. Error(data) where it says
/// nothing of one of them, but of others.
ClusterCosts parse_cluster(const std::string& text, const std::string& path, const Communicator& communicator);
/// Whether the text is that of measurements on these hosts, with as many ranks on each.
bool is_of_same_hosts(const std::string& text, const Communicator& communicator);

}  // namespace weft::comm
