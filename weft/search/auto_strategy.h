// strategy = "auto": chooses for a recipe, a place and a number of ranks, and says what was chosen and why.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/library/library.h"
#include "weft/predict/planned_run.h"
#include "weft/search/search.h"

namespace weft::search {

struct Choice {
  Found found;
  predict::Strategy start;  // the recipe as it stands
  std::string model;
  std::string blocks;  // how the blocks of the model repeat
  std::string times_from, exchange_from;
  int64_t graphs = 0;       // that were built for estimates
  double memory_bytes = 0;  // of a rank, that the strategy keeps to

  const predict::Strategy& strategy() const { return found.ranked.at(*found.chosen).strategy; }
};

/// Of model.spec, which must be resolved, on the ranks of `start` (predict::strategy_of). A rank's memory is
/// memory_limit, or all that it has on the place. Error(usage) where no strategy fits, with the least memory that would
/// do and the strategy that wants it.
/// `progress` is told what is done, after each strategy; it may be empty.
Choice choose_strategy(const Library& library, const predict::PlannedModel& model, const predict::Place& place,
                       const predict::Strategy& start, const Limits& limits = {},
                       const std::function<void(const std::string&)>& progress = {});

/// Sets the recipe's keys to what was chosen, `strategy` to "manual", and batches of evaluations to no more rows than a
/// rank trains on at a time. Does not resolve the recipe.
void apply_choice(const predict::Strategy& chosen, spec::RunSpec& spec);

/// The table: what was chosen, the runners-up and why each lost, what the run would refuse, what was counted.
std::string describe(const Choice& choice);
nlohmann::ordered_json to_json(const Choice& choice);

}  // namespace weft::search
