// How a search chooses what to try next. A searcher has no state of its own: what it proposes is a pure function of the
// space, the trials so far and the seed. So a study that was interrupted goes on as if nothing had happened, and
// several processes may ask for trials of one study.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/tune/space/space.h"

namespace weft::tune {

/// A point that was proposed, and what came of it.
struct Trial {
  enum class State { running, finished, failed };
  Point point;
  State state = State::running;
  std::vector<double> losses = {};  // of a finished trial, one for each objective: the lower the better
  double resource = 0;              // such as epochs, after which the losses were measured; 0: all alike
  int64_t generation = 0;           // as proposed

  bool is_finished() const { return state == State::finished; }
};

/// In the order in which they were proposed: the number of a trial is its index.
using History = std::vector<Trial>;

struct Proposal {
  Point point;
  int64_t generation = 0;  // of searchers that work by generations; comes back as Trial::generation
};

struct SearchState {
  const Space& space;
  const History& history;
  int64_t seed = 0;
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  /// Error(usage) for a space that the searcher cannot search.
  virtual void check(const Space&) const {}
  /// What to try as trial number history.size(); nullopt where nothing is left to try.
  virtual std::optional<Proposal> ask(const SearchState& state) const = 0;
};

struct SearcherOptions {
  int64_t startup_trials = 10;  // of searchers that learn: so many first trials are spread evenly (Sobol)
  int64_t grid_levels = 5;      // of the grid: values of each range of numbers
  int64_t population = 0;       // of searchers that work by generations; 0: their own choice
  int64_t objectives = 1;
  const Library* library = nullptr;  // of searchers that train a network; outlives them
};

struct SearcherEntry {
  std::string name;     // "tpe"
  std::string summary;  // a line
  std::unique_ptr<Searcher> (*make)(const SearcherOptions& options);
  bool takes_several_objectives = false;
};

/// All that there are, in the order of the documentation.
const std::vector<SearcherEntry>& searcher_entries();

/// Error(usage) for an unknown name, with the nearest one, and where it takes one objective and there are several.
std::unique_ptr<Searcher> make_searcher(const std::string& name, const SearcherOptions& options = {});

/// Of losses: whether `a` is nowhere worse than `b`, and somewhere better.
bool dominates(const std::vector<double>& a, const std::vector<double>& b);

/// Whether a trial has this point, ended or not.
bool was_tried(const Point& point, const History& history);

/// What the searcher proposes, or, where a space of few points has been tried there already, a point that has not.
/// nullopt where all have. Training twice with the same seed gives the same result: there is nothing to learn from it.
std::optional<Proposal> propose_new(const Searcher& searcher, const SearchState& state);

}  // namespace weft::tune
