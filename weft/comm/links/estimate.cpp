#include "weft/comm/links/estimate.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/error.h"

namespace weft::comm {

namespace {

/// The prices of one kind of link.
class Prices {
 public:
  Prices(const EstimatedCollective& what, const LinkCosts& link) : what_(what), link_(link) {}
  /// For which a message keeps the link.
  double step(double elements) const {
    if (elements <= 0) return 0;
    return std::max(link_.message_seconds,
                    elements * static_cast<double>(what_.element_bytes) / link_.bytes_per_second);
  }
  double latency() const { return link_.latency_seconds; }
  double sum(double elements) const { return elements / what_.summed_elements_per_second; }

 private:
  const EstimatedCollective& what_;
  const LinkCosts& link_;
};

/// How many chunks, and how large they are.
struct Chunks {
  double count = 1, elements = 0;
};

Chunks chunks_of(double elements, int64_t chunk) {
  const double count = chunk <= 0 ? 1 : std::max(1.0, std::ceil(elements / static_cast<double>(chunk)));
  return {count, elements / count};
}

int log2_floor(int size) { return std::bit_width(static_cast<unsigned>(size)) - 1; }
int log2_ceil(int size) { return size <= 1 ? 0 : std::bit_width(static_cast<unsigned>(size - 1)); }

/// `rounds` pieces, one after the other, each passed on chunk by chunk: either the link is never idle, or each round
/// waits for its first chunk. `sums`: whether a chunk is added before it is passed on.
Estimate around(const Prices& prices, double rounds, const Chunks& chunks, bool sums) {
  const double step = prices.step(chunks.elements), busy = chunks.count * step;
  const double chunk_seconds = step + prices.latency() + (sums ? prices.sum(chunks.elements) : 0);
  const double tail = (chunks.count - 1) * step;  // of the last round, behind its first chunk
  return {std::max(rounds * busy + prices.latency(), rounds * chunk_seconds + tail), rounds * busy};
}

Estimate both(const Estimate& a, const Estimate& b) { return {a.seconds + b.seconds, a.link_seconds + b.link_seconds}; }

/// All send each other `elements`, one message after the other; `waits`: for how much longer, since ports are busy.
Estimate to_all(const Prices& prices, double others, double elements, bool sums, double waits = 1) {
  const double busy = others * prices.step(elements);
  return {waits * busy + (others > 0 ? prices.latency() : 0) + (sums ? prices.sum(elements) : 0), busy};
}

/// Members beyond a power of two hand over all they have and get the result.
Estimate beyond_power(const Prices& prices, int size, double elements) {
  if (std::has_single_bit(static_cast<unsigned>(size))) return {};
  const double step = prices.step(elements);
  return {2 * (step + prices.latency()) + prices.sum(elements), step};
}

Estimate halving_doubling(const Prices& prices, int size, double elements) {
  Estimate total = beyond_power(prices, size, elements);
  for (int round = 1; round <= log2_floor(size); ++round) {
    const double part = std::ldexp(elements, -round), step = prices.step(part);
    total = both(total, {2 * (step + prices.latency()) + prices.sum(part), 2 * step});
  }
  return total;
}

Estimate recursive_doubling(const Prices& prices, int size, double elements) {
  const double step = prices.step(elements), rounds = log2_floor(size);
  return both(beyond_power(prices, size, elements),
              {rounds * (step + prices.latency() + prices.sum(elements)), rounds * step});
}

/// Up both trees and down again. A member is an inner node of one tree, with two children there, and a leaf of the
/// other: its port takes each half four times. Chunks of both trees wait for each other at the ports: simulated, a
/// chunk takes 2.25 messages per level of the tree, whatever follows it.
Estimate double_binary_tree(const Prices& prices, int size, double elements, int64_t chunk) {
  const Chunks chunks = chunks_of(elements / 2, chunk);
  const double step = prices.step(chunks.elements), depth = log2_ceil(size + 1);
  const double levels = chunks.count * depth * 2.25 * step;
  return {levels + depth * 2 * (prices.latency() + prices.sum(chunks.elements)), 4 * chunks.count * step};
}

Estimate hierarchical(const EstimatedCollective& what, const Links& links) {
  const int groups = links.groups(), of_group = what.size / groups;
  check(groups > 0 && what.size % groups == 0, "groups of different sizes");
  const LinkCosts within = links.of(0, std::min(1, of_group - 1));
  LinkCosts between = links.of(0, of_group < what.size ? of_group : 0);
  // What leaves a group shares its uplink.
  for (int group = 0; group < groups; ++group)
    between.bytes_per_second = std::min(between.bytes_per_second, links.uplink(group) / of_group);
  const Prices inside(what, within), outside(what, between);
  const Chunks chunks = chunks_of(static_cast<double>(what.elements), what.chunk);
  const double piece = chunks.elements / of_group, share = piece / groups;
  const Estimate in = both(to_all(inside, of_group - 1, piece, true), to_all(inside, of_group - 1, piece, false));
  const Estimate out = both(to_all(outside, groups - 1, share, true), to_all(outside, groups - 1, share, false));
  // Chunks follow each other over links of both kinds; one member's port serves both, and waits for either: simulated,
  // a chunk takes twice as long as its messages.
  const double busy = in.link_seconds + out.link_seconds;
  return {in.seconds + out.seconds + (chunks.count - 1) * 2 * busy, chunks.count * busy};
}

}  // namespace

Estimate estimate_all_reduce(const EstimatedCollective& what, const Links& links) {
  if (what.size <= 1) return {};
  if (what.algorithm == Algorithm::hierarchical) return hierarchical(what, links);
  const LinkCosts slowest = links.slowest();
  const Prices prices(what, slowest);
  const auto elements = static_cast<double>(what.elements);
  const double others = what.size - 1, piece = elements / what.size;
  switch (what.algorithm) {
    case Algorithm::ring: {
      const Chunks chunks = chunks_of(piece, what.chunk);
      return both(around(prices, others, chunks, true), around(prices, others, chunks, false));
    }
    case Algorithm::halving_doubling:
      return halving_doubling(prices, what.size, elements);
    case Algorithm::recursive_doubling:
      return recursive_doubling(prices, what.size, elements);
    case Algorithm::double_binary_tree:
      return double_binary_tree(prices, what.size, elements, what.chunk);
    default: {
      // Sums and results meet at the ports: simulated, groups of 16 and 64 take 1.3 and 1.6 times as long.
      const double waits = 1 + 0.1 * std::log2(what.size);
      return both(to_all(prices, others, piece, true, waits), to_all(prices, others, piece, false, waits));
    }
  }
}

namespace {

Estimate pieces_to_all(const EstimatedCollective& what, const Links& links, bool sums) {
  if (what.size <= 1) return {};
  const LinkCosts slowest = links.slowest();
  const Prices prices(what, slowest);
  const double others = what.size - 1, piece = static_cast<double>(what.elements) / what.size;
  if (what.algorithm == Algorithm::ring) return around(prices, others, chunks_of(piece, what.chunk), sums);
  if (what.algorithm != Algorithm::recursive_doubling) return to_all(prices, others, piece, sums);
  Estimate total;
  for (double have = 1, left = others; left > 0; have *= 2) {
    const double part = std::min(have, left) * piece, step = prices.step(part);
    total = both(total, {step + prices.latency() + (sums ? prices.sum(part) : 0), step});
    left -= std::min(have, left);
  }
  return total;
}

Estimate along_a_tree(const EstimatedCollective& what, const Links& links, bool sums) {
  if (what.size <= 1) return {};
  const LinkCosts slowest = links.slowest();
  const Prices prices(what, slowest);
  const auto elements = static_cast<double>(what.elements);
  if (what.algorithm == Algorithm::direct_exchange) {
    const double busy = (what.size - 1) * prices.step(elements);
    return {busy + prices.latency() + (sums ? prices.sum(elements) : 0), busy};
  }
  const Chunks chunks = chunks_of(elements, what.chunk);
  const bool is_chain = what.algorithm == Algorithm::chain;
  const double hops = is_chain ? what.size - 1 : log2_ceil(what.size);
  const double messages = is_chain ? 1 : hops;  // of the root, per chunk
  const double step = prices.step(chunks.elements);
  const double hop = step + prices.latency() + (sums ? prices.sum(chunks.elements) : 0);
  return {hops * hop + (chunks.count - 1) * messages * step, chunks.count * messages * step};
}

}  // namespace

Estimate estimate_gather(const EstimatedCollective& what, const Links& links) {
  return pieces_to_all(what, links, /*sums=*/false);
}
Estimate estimate_reduce_scatter(const EstimatedCollective& what, const Links& links) {
  return pieces_to_all(what, links, /*sums=*/true);
}
Estimate estimate_broadcast(const EstimatedCollective& what, const Links& links) {
  return along_a_tree(what, links, /*sums=*/false);
}
Estimate estimate_reduction(const EstimatedCollective& what, const Links& links) {
  return along_a_tree(what, links, /*sums=*/true);
}

}  // namespace weft::comm
