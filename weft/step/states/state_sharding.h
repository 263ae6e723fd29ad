// How the ranks of a run share a state: each has a part of it, or some of them alone have it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/graph/sharding.h"

namespace weft::step {

struct StateSharding : Sharding {
  std::vector<int> on;  // the ranks that have it, in rising order; empty: all

  StateSharding(Sharding sharding = {}, std::vector<int> ranks = {})
      : Sharding(std::move(sharding)), on(std::move(ranks)) {}
  friend bool operator==(const StateSharding&, const StateSharding&) = default;
};

/// Of states of which each rank keeps a part, or which not all of them have, by name.
using Shardings = std::map<std::string, StateSharding>;

/// Whether this rank has the state, or a part of it.
bool is_held(const StateSharding& sharding, int64_t rank);

/// "flat(data=2) of (64,3)", "replicated of (64,3) on ranks 0,2"
std::string to_string(const StateSharding& sharding);
/// Reverses to_string; Error(data) with the text.
StateSharding parse_state_sharding(std::string_view text);

}  // namespace weft::step
