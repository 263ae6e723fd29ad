// Chooses machines, how many of them, and a strategy, for a deadline and a budget.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/machines/cluster_file.h"
#include "weft/planner/restarts.h"
#include "weft/predict/prediction.h"

namespace weft::planner {

struct Candidate {
  const machines::ClusterFile* cluster = nullptr;
  bool spot = false;
  predict::Strategy strategy = {};
  bool is_open = false;  // of the strategy the ranks alone are given: whoever evaluates it chooses the rest

  /// Of all its hosts; 0: not rated.
  double price_per_hour() const;
};

/// What a candidate is predicted to come to, restarts included.
struct Offer {
  Candidate candidate;
  predict::Interval seconds = {}, cost = {};  // cost is 0 where the cluster has no price
  Restarts restarts = {};
  double cores_per_device = 0;  // that loading keeps busy; 0: not known
  predict::Prediction prediction = {};
};

struct Goal {
  std::optional<double> deadline_seconds = {}, budget = {};
};
/// In nine of ten cases: by the upper ends.
bool meets(const Offer& offer, const Goal& goal);
/// The largest of what it takes over what the goal allows; 1 or less meets it.
double distance_to(const Offer& offer, const Goal& goal);

struct Evaluator {
  /// Error(usage) where it cannot be.
  std::function<Offer(const Candidate& candidate)> offer;
  /// Seconds that the run takes at least, whatever the prediction says: known without a plan. 0: not known.
  std::function<double(const Candidate& candidate)> least_seconds = {};
};

struct Found {
  std::vector<Offer> offers;      // those that were evaluated, the fastest first
  std::vector<size_t> front;      // of them, those that no other beats in both time and cost
  std::optional<size_t> best;     // the cheapest that meets the goal, the fastest among those that cost as much
  std::optional<size_t> nearest;  // where none does: the one that comes nearest
  struct Refused {
    Candidate candidate;
    std::string why;
  };
  std::vector<Refused> refused;
  int64_t left_out = 0;  // without a plan, since an offer beats the least that they could take
};

/// Looks at all candidates. Leaves out those which an offer beats whatever their plans would be, so that front, best
/// and nearest are those of an enumeration. `progress` is told how many are done.
Found search(std::vector<Candidate> candidates, const Goal& goal, const Evaluator& evaluator,
             const std::function<void(size_t done, size_t all)>& progress = {});

struct StrategyChoices {
  bool spot = false;
  bool averages = false;  // also means of states every 8 steps, which may cost accuracy
  int64_t ranks = 0;      // on so many alone; 0: as below
  bool open = false;      // one candidate for each number of ranks, whose strategy is chosen
};
/// Error(usage) where prices are in more than one currency, with the clusters of each: numbers do not compare them.
void require_one_currency(const std::vector<machines::ClusterFile>& clusters);

/// Error(usage) where none of them has a price, so that nothing can be said to keep to a budget, with their files.
/// `spot`: those of spot machines count.
void require_prices(const std::vector<machines::ClusterFile>& clusters, bool spot);

/// For each cluster: 1, 2, 4... hosts and all of them, on which the ranks can be the recipe's mesh and share its
/// batch; levels of shared states, 16-bit gradients. Where strategies are open, ranks that cannot share the batch may
/// share layers.
std::vector<Candidate> candidates_of(const std::vector<machines::ClusterFile>& clusters, const spec::RunSpec& spec,
                                     const StrategyChoices& choices);

}  // namespace weft::planner
