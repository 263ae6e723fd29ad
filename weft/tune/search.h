// A search of any function, in memory: the twenty lines that a program needs to tune something of its own.
//
//   tune::Search search(tune::Space({tune::log_real("rate", 1e-4, 1), tune::integer("width", 16, 256)}));
//   while (search.history().size() < 50) {
//     const tune::Asked asked = *search.ask();
//     search.tell(asked.number, {loss(tune::number_of(asked.values, "rate"), ...)});
//   }
//   search.best()->values
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/tune/searchers/searcher.h"
#include "weft/tune/space/space.h"

namespace weft::tune {

struct SearchOptions {
  std::string searcher = "auto";
  int64_t seed = 1;
  SearcherOptions options = {};
  bool repeats = false;  // may try a point twice, as functions with noise want it
};

struct Asked {
  int64_t number = 0;
  Values values;
};

struct Found {
  int64_t number = 0;
  Values values;
  std::vector<double> losses;
};

class Search {
 public:
  /// Error(usage) for an unknown searcher.
  explicit Search(Space space, const SearchOptions& options = {});

  /// What to try next; several may be asked for before any is told. nullopt where nothing is left to try.
  std::optional<Asked> ask();
  /// The losses of a trial, one for each objective, the lower the better. Error(usage) where the trial was not asked
  /// for, or has been told. Where a loss is not finite the trial has failed.
  void tell(int64_t number, std::vector<double> losses);
  /// The trial came to nothing: others will look elsewhere.
  void tell_failed(int64_t number);

  const Space& space() const { return space_; }
  const History& history() const { return history_; }
  /// The lowest first loss; nullopt where no trial has finished.
  std::optional<Found> best() const;
  /// Those that no other trial beats in one loss without being beaten in another, in the order in which they were asked
  /// for.
  std::vector<Found> front() const;

 private:
  Trial& running(int64_t number);
  Found found(size_t number) const;

  Space space_;
  SearchOptions options_;
  std::unique_ptr<Searcher> searcher_;
  History history_;
};

}  // namespace weft::tune
