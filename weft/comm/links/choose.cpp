#include "weft/comm/links/choose.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "weft/base/error.h"
#include "weft/comm/links/estimate.h"
#include "weft/comm/links/orders.h"
#include "weft/comm/schedules/broadcast.h"
#include "weft/comm/schedules/reordered.h"

namespace weft::comm {

namespace {

constexpr int64_t kSmallestChunkBytes = 16 << 10, kLargestChunkBytes = 4 << 20;
constexpr double kNearEnough = 1.02;
constexpr double kLittleMore = 1.05;    // of the link's time, or of the least that is predicted
constexpr double kWaitSeconds = 10e-3;  // for which a message waits, to tell apart what is predicted to cost the same
constexpr int64_t kMostActions = 200'000;  // simulated per candidate, of all members

/// What chunks are of, and how many of it a member sends, or receives.
struct Pieces {
  int64_t elements = 0;  // 0: the algorithm has no chunks
  int64_t per_member = 1;
};

/// Larger groups are estimated by formula: a ring of n members has 4n^2 actions.
constexpr int kMostSimulated = 64;

/// What is to be chosen, as the search sees it.
struct Question {
  int size = 1;
  int64_t elements = 0;
  Estimate (*estimate)(const EstimatedCollective&, const Links&) = nullptr;
  std::vector<Algorithm> algorithms;
  std::function<Pieces(Algorithm)> pieces;
  /// `place`: of the member, in the order of hosts.
  std::function<Schedule(Algorithm, int place, int64_t chunk, const std::vector<int>& order)> make;
  int root = -1;  // a host
  bool may_reorder = true;
};

struct Candidate {
  Choice choice;
  double link_seconds = 0;  // for which it keeps the link of the busiest member
};

std::vector<int64_t> chunks_of(const Question& question, Algorithm algorithm, int64_t element_bytes) {
  const Pieces pieces = question.pieces(algorithm);
  if (pieces.elements == 0) return {0};
  std::vector<int64_t> chunks;
  for (int64_t bytes = kSmallestChunkBytes; bytes <= kLargestChunkBytes; bytes *= 4) {
    const int64_t chunk = bytes / element_bytes, count = std::max<int64_t>(1, pieces.elements / chunk);
    const bool is_cheap = 2 * count * pieces.per_member * question.size <= kMostActions;
    if (is_cheap || question.size > kMostSimulated) chunks.push_back(chunk);
    if (count == 1) break;
  }
  if (chunks.empty()) chunks.push_back(pieces.elements);
  return chunks;
}

/// Whether another candidate is to be preferred, by so much less or in spite of so much more.
double margin_of(const Choice& best, const Choice& other) {
  if (best.algorithm == other.algorithm && best.order == other.order && other.chunk > best.chunk)
    return kNearEnough;  // larger chunks are fewer messages, which cost more than the link's time
  return best.order.empty() && !other.order.empty() ? 1 / kNearEnough : 1;
}

std::vector<Schedule> schedules_of(const Question& question, const Choice& choice) {
  std::vector<Schedule> schedules;
  for (int place = 0; place < question.size; ++place)
    schedules.push_back(question.make(choice.algorithm, place, choice.chunk, choice.order));
  return schedules;
}

Choice choose(const Question& question, int64_t element_bytes, const Links& links, double summed_bytes_per_second,
              std::optional<Algorithm> only, int64_t count, double queue_seconds = 0) {
  std::vector<Algorithm> algorithms = question.algorithms;
  if (only && std::find(algorithms.begin(), algorithms.end(), *only) != algorithms.end()) algorithms.assign(1, *only);
  std::vector<std::vector<int>> orders{{}};
  if (question.may_reorder) orders = orders_of(links, question.size, question.root);
  const double summed_elements_per_second = summed_bytes_per_second / static_cast<double>(sizeof(float));
  const auto cost_of = [&](const Choice& choice, const Links& costs) -> Estimate {
    if (question.size > kMostSimulated)
      return question.estimate({.algorithm = choice.algorithm,
                                .size = question.size,
                                .elements = question.elements,
                                .chunk = choice.chunk,
                                .element_bytes = element_bytes,
                                .summed_elements_per_second = summed_elements_per_second},
                               costs);
    const std::vector<Schedule> schedules = schedules_of(question, choice);
    return {simulate(schedules, costs, summed_elements_per_second, element_bytes),
            busiest_seconds(schedules, costs, element_bytes)};
  };
  std::vector<Candidate> candidates;
  double least_link_seconds = std::numeric_limits<double>::infinity(), least_seconds = least_link_seconds;
  for (const std::vector<int>& order : orders) {
    const Links ordered = links.reordered(order);
    for (const Algorithm algorithm : algorithms) {
      if (algorithm == Algorithm::hierarchical && !has_groups_in_turn(ordered, question.size)) continue;
      for (const int64_t chunk : chunks_of(question, algorithm, element_bytes)) {
        Candidate candidate{.choice = {algorithm, chunk, 0, order}};
        const Estimate cost = cost_of(candidate.choice, ordered);
        candidate.link_seconds = cost.link_seconds;
        candidate.choice.seconds = cost.seconds + static_cast<double>(count - 1) * cost.link_seconds;
        least_link_seconds = std::min(least_link_seconds, candidate.link_seconds);
        least_seconds = std::min(least_seconds, candidate.choice.seconds);
        candidates.push_back(std::move(candidate));
      }
    }
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return queue_seconds > 0 ? candidate.link_seconds > kLittleMore * least_link_seconds
                             : candidate.choice.seconds > kLittleMore * least_seconds;
  });
  check(!candidates.empty(), "no algorithm for a collective");
  if (candidates.size() == 1) return candidates.front().choice;
  const Candidate* best = nullptr;
  double best_queued_seconds = 0;  // behind other tensors
  for (const Candidate& candidate : candidates) {
    const Links queued =
        links.reordered(candidate.choice.order).delayed(queue_seconds > 0 ? queue_seconds : kWaitSeconds);
    const double queued_seconds =
        cost_of(candidate.choice, queued).seconds + static_cast<double>(count - 1) * candidate.link_seconds;
    if (best != nullptr && queued_seconds >= margin_of(best->choice, candidate.choice) * best_queued_seconds) continue;
    best = &candidate;
    best_queued_seconds = queued_seconds;
  }
  return best->choice;
}

Question from_or_to_root(int size, int root, int64_t elements,
                         Schedule (*make)(Algorithm, int, int, int, int64_t, int64_t),
                         Estimate (*estimate)(const EstimatedCollective&, const Links&)) {
  return {.size = size,
          .elements = elements,
          .estimate = estimate,
          .algorithms = broadcast_algorithms(),
          .pieces = [=](Algorithm algorithm) -> Pieces {
            return {algorithm == Algorithm::direct_exchange ? 0 : std::max<int64_t>(elements, 1), 1};
          },
          .make =
              [=](Algorithm algorithm, int place, int64_t chunk, const std::vector<int>& order) {
                return make(algorithm, place, size, place_of(order, root), elements, chunk);
              },
          .root = root};
}

}  // namespace

Choice choose_algorithm(int size, int64_t elements, int64_t element_bytes, const Links& links,
                        double summed_bytes_per_second, std::optional<Algorithm> only, int64_t count,
                        double queue_seconds, bool may_reorder) {
  // Sums that are rounded on their way, but not where they stay, would differ between members.
  const bool doubling_is_exact = element_bytes == 4 || size <= 2;
  if (only == Algorithm::recursive_doubling && !doubling_is_exact) only = Algorithm::halving_doubling;
  std::vector<Algorithm> algorithms = all_algorithms();
  if (!doubling_is_exact) std::erase(algorithms, Algorithm::recursive_doubling);
  const std::vector<std::vector<int>> orders = may_reorder ? orders_of(links, size) : std::vector<std::vector<int>>{{}};
  const auto has_groups = [&](const auto& order) { return has_groups_in_turn(links.reordered(order), size); };
  if (may_reorder && std::any_of(orders.begin(), orders.end(), has_groups))
    algorithms.push_back(Algorithm::hierarchical);
  const Question question{
      .size = size,
      .elements = elements,
      .estimate = estimate_all_reduce,
      .algorithms = algorithms,
      .pieces = [=](Algorithm algorithm) -> Pieces {
        if (!is_chunked(algorithm)) return {};
        if (algorithm == Algorithm::ring) return {std::max<int64_t>(elements / size, 1), int64_t{2} * size};
        if (algorithm == Algorithm::hierarchical) return {std::max<int64_t>(elements, 1), int64_t{2} * size};
        return {std::max<int64_t>(elements / 2, 1), 4};
      },
      .make = [=, groups = links.groups()](
                  Algorithm algorithm, int place, int64_t chunk,
                  const std::vector<int>&) { return make_schedule(algorithm, place, size, elements, chunk, groups); },
      .may_reorder = may_reorder};
  return choose(question, element_bytes, links, summed_bytes_per_second, only, count, queue_seconds);
}

Choice choose_gather(const std::vector<int64_t>& begins, int64_t element_bytes, const Links& links,
                     std::optional<Algorithm> only) {
  const Question question{.size = static_cast<int>(begins.size()) - 1,
                          .elements = begins.back(),
                          .estimate = estimate_gather,
                          .algorithms = all_gather_algorithms(),
                          .pieces = [](Algorithm) { return Pieces{}; },
                          .make =
                              [&](Algorithm algorithm, int place, int64_t, const std::vector<int>& order) {
                                return make_gather_schedule(algorithm, place, begins, /*chunk=*/0, order);
                              }};
  return choose(question, element_bytes, links, /*summed_bytes_per_second=*/4, only, 1);
}

Choice choose_reduce_scatter(const std::vector<int64_t>& begins, int64_t element_bytes, const Links& links,
                             double summed_bytes_per_second, std::optional<Algorithm> only) {
  const int size = static_cast<int>(begins.size()) - 1;
  const Question question{
      .size = size,
      .elements = begins.back(),
      .estimate = estimate_reduce_scatter,
      .algorithms = all_gather_algorithms(),
      .pieces = [&](Algorithm algorithm) -> Pieces {
        return {algorithm == Algorithm::ring ? std::max<int64_t>(begins.back() / size, 1) : 0, size - 1};
      },
      .make =
          [&](Algorithm algorithm, int place, int64_t chunk, const std::vector<int>& order) {
            return make_reduce_scatter_schedule(algorithm, place, begins, chunk, order);
          }};
  return choose(question, element_bytes, links, summed_bytes_per_second, only, 1);
}

Choice choose_broadcast(int size, int root, int64_t elements, int64_t element_bytes, const Links& links,
                        std::optional<Algorithm> only, int64_t count) {
  return choose(from_or_to_root(size, root, elements, make_broadcast_schedule, estimate_broadcast), element_bytes,
                links,
                /*summed_bytes_per_second=*/1, only, count);
}

Choice choose_reduction(int size, int root, int64_t elements, int64_t element_bytes, const Links& links,
                        double summed_bytes_per_second, std::optional<Algorithm> only, int64_t count) {
  return choose(from_or_to_root(size, root, elements, make_reduction_schedule, estimate_reduction), element_bytes,
                links, summed_bytes_per_second, only, count);
}

}  // namespace weft::comm
