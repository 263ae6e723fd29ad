// What travels between the ranks of a step, along each axis of their mesh, and over which links.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weft/predict/strategy.h"

namespace weft::predict {

/// What travels between ranks in a step, of one rank's operands.
struct ExchangedBytes {
  int64_t reduced = 0;    // each rank gets the sum of all
  int64_t gathered = 0;   // a rank's part of what all get
  int64_t scattered = 0;  // whole operands of which each rank gets its part of the sum
  int64_t dealt = 0;      // whole operands of which each rank gets its part as it is
  int64_t sent = 0;       // to one other rank: messages between the stages of a pipeline
  friend bool operator==(const ExchangedBytes&, const ExchangedBytes&) = default;
};

/// By the axis of the mesh along which they travel (graph/collective.h).
using ExchangedByAxis = std::map<std::string, ExchangedBytes, std::less<>>;

/// What a link carries per step and direction.
struct LinkTraffic {
  std::string link;  // "between hosts, of each host", "within a host, of each rank"
  double bytes = 0, seconds = 0;
};

/// Of ranks that fill one host after the other, as step/rank_mesh.h arranges them: of the host, and of the rank, that
/// sends the most. Ranks of one host first put together what leaves it.
std::vector<LinkTraffic> traffic_of(const ExchangedByAxis& exchanged, const Strategy& strategy);

}  // namespace weft::predict
