// All-reduce algorithms: each makes the schedule of one member of a group of any size, 1 among them. With n members,
// V elements, a latency a and a time b per element, without the sums:
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/comm/schedules/schedule.h"

namespace weft::comm {

enum class Algorithm : uint8_t {
  ring,
  halving_doubling,
  recursive_doubling,
  double_binary_tree,
  direct_exchange,
  chain,          // from a root only (broadcast.h)
  binomial_tree,  // the same
  native,         // what the communicator has (native_all_reduce.h), in f32, of all ranks at once
  hierarchical,   // over groups of members
};

/// Pieces travel around a ring, in the reduce-scatter and in the all-gather: 2(n-1)(a + bV/n), which is the least
/// possible traffic (Thakur, Rabenseifner, Gropp 2005, 4.4; Patarasuk, Yuan 2009). Pieces are cut into chunks, so that
/// a chunk is passed on while the next one comes.
Schedule make_ring(int member, int size, int64_t elements, int64_t chunk);

/// Recursive vector halving and distance doubling, then back (Rabenseifner 2004): 2 log2(n) a + 2(n-1)/n bV for powers
/// of two. Of other sizes the members beyond first give all they have to a neighbour, and get the result at the end.
/// Sums neighbours first: (m0 + m1) + (m2 + m3).
Schedule make_halving_doubling(int member, int size, int64_t elements);

/// Everything is exchanged with a neighbour at distance 1, 2, 4...: log2(n)(a + bV), the fewest steps for few elements
/// (Thakur, Rabenseifner, Gropp 2005, 4.2). Each element is summed by several members, in the same order but for the
/// two sides of an addition: the same bits, as long as sums travel in f32.
Schedule make_recursive_doubling(int member, int size, int64_t elements);

/// Two binary trees, each for half of the elements, arranged such that a leaf of one is an inner node of the other
/// (Sanders, Speck, Träff 2009): about 2 log2(n) a + 2bV with chunks that flow up and down at once.
Schedule make_double_binary_tree(int member, int size, int64_t elements, int64_t chunk);

/// Each member owns a piece: all send it theirs, and it sends all the sum: 2a + 2(n-1)/n bV where n-1 messages at once
/// cost no more than one after the other.
Schedule make_direct_exchange(int member, int size, int64_t elements);

/// Of `groups` groups of m = n / groups members each, which stand one behind the other: each member gets a piece summed
/// over its group, exchanges it with its peers in the other groups, and gives it to its group: direct exchanges, in
/// 4a + 2(m-1)/m bV over links within groups, and between them 2(groups-1)/groups V/m per member, the least possible
/// for what a group sends and gets together. Chunks follow each other, so that links of both kinds work at once.
Schedule make_hierarchical(int member, int size, int64_t elements, int64_t chunk, int groups);

/// One action, that the communicator does; cannot be simulated.
Schedule make_native(int64_t elements);

/// Whether the algorithm cuts into chunks of a size to be chosen.
bool is_chunked(Algorithm algorithm);
/// `groups`: for the hierarchical one, which has to have as many members in each.
Schedule make_schedule(Algorithm algorithm, int member, int size, int64_t elements, int64_t chunk, int groups = 1);

/// "ring", "halving-doubling", "doubling", "double-tree", "direct", "chain", "tree", "MPI", "hierarchical"
std::string_view name_of(Algorithm algorithm);
std::optional<Algorithm> parse_algorithm(std::string_view name);
/// Those of an all-reduce of members of which none are nearer to each other.
const std::vector<Algorithm>& all_algorithms();

}  // namespace weft::comm
