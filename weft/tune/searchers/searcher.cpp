#include "weft/tune/searchers/searcher.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/tune/searchers/entries.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

const std::vector<SearcherEntry>& searcher_entries() {
  static const std::vector<SearcherEntry> entries = {
      {"auto", "gp for the first 200 trials, then tpe", make_automatic_searcher},
      {"tpe", "tree of Parzen estimators: tries what is likely among the good trials and rare among the others",
       make_tpe_searcher},
      {"gp",
       "Bayesian optimisation by a Gaussian process: for trials that take long, and at most some hundreds of them",
       make_bayesian_searcher},
      {"cma-es", "covariance matrix adaptation: for numbers, and hundreds of trials", make_cma_es_searcher},
      {"nsga2", "a population that is bred and sorted: for several objectives", make_nsga_searcher,
       /*takes_several_objectives=*/true},
      {"ppo", "reinforcement learning: a network that makes the choices and learns from their results",
       make_ppo_searcher},
      {"random", "each trial by chance", make_random_searcher, /*takes_several_objectives=*/true},
      {"sobol", "trials spread evenly, by a scrambled Sobol sequence", make_sobol_searcher,
       /*takes_several_objectives=*/true},
      {"grid", "every combination of some values of each range", make_grid_searcher,
       /*takes_several_objectives=*/true},
  };
  return entries;
}

std::unique_ptr<Searcher> make_searcher(const std::string& name, const SearcherOptions& options) {
  std::vector<std::string> names, for_several;
  for (const SearcherEntry& entry : searcher_entries()) {
    names.push_back(entry.name);
    if (entry.takes_several_objectives) for_several.push_back(entry.name);
  }
  for (const SearcherEntry& entry : searcher_entries()) {
    if (entry.name != name) continue;
    if (options.objectives > 1 && !entry.takes_several_objectives)
      fail(ErrorKind::usage, "the searcher '{}' takes one objective, and there are {}; choose one of: {}", name,
           options.objectives, fmt::join(for_several, ", "));
    return entry.make(options);
  }
  fail(ErrorKind::usage, "there is no searcher '{}'{}", name, suggestion(name, names));
}

bool dominates(const std::vector<double>& a, const std::vector<double>& b) {
  bool is_better = false;
  for (size_t index = 0; index < a.size(); ++index) {
    if (a[index] > b[index]) return false;
    is_better |= a[index] < b[index];
  }
  return is_better;
}

namespace {

constexpr size_t kFewPoints = 10'000;  // a space of more is not listed

}  // namespace

bool was_tried(const Point& point, const History& history) {
  return std::any_of(history.begin(), history.end(), [&](const Trial& trial) { return trial.point == point; });
}

std::optional<Proposal> propose_new(const Searcher& searcher, const SearchState& state) {
  std::optional<Proposal> proposal = searcher.ask(state);
  if (!proposal || !was_tried(proposal->point, state.history)) return proposal;
  if (state.space.count().value_or(kFewPoints + 1) > kFewPoints) return proposal;
  std::optional<std::vector<Point>> untried = grid_points(state.space, 0, kFewPoints);
  if (!untried) return proposal;
  std::erase_if(*untried, [&](const Point& point) { return was_tried(point, state.history); });
  if (untried->empty()) return std::nullopt;
  Random random(state.seed, static_cast<int64_t>(state.history.size()));
  proposal->point = (*untried)[random.below(untried->size())];
  return proposal;
}

}  // namespace weft::tune
