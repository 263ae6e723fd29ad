#include "weft/comm/choose.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "weft/base/error.h"
#include "weft/comm/schedules/all_gather.h"
#include "weft/comm/schedules/broadcast.h"
#include "weft/comm/schedules/reduce_scatter.h"

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

/// What is to be chosen, as the search sees it.
struct Question {
  int size = 1;
  std::vector<Algorithm> algorithms;
  std::function<Pieces(Algorithm)> pieces;
  std::function<Schedule(Algorithm, int member, int64_t chunk)> make;
};

struct Candidate {
  Choice choice;
  double link_seconds = 0;    // for which it keeps the link of the busiest member
  double queued_seconds = 0;  // behind other tensors
};

std::vector<int64_t> chunks_of(const Question& question, Algorithm algorithm, int64_t element_bytes) {
  const Pieces pieces = question.pieces(algorithm);
  if (pieces.elements == 0) return {0};
  std::vector<int64_t> chunks;
  for (int64_t bytes = kSmallestChunkBytes; bytes <= kLargestChunkBytes; bytes *= 4) {
    const int64_t chunk = bytes / element_bytes, count = std::max<int64_t>(1, pieces.elements / chunk);
    if (2 * count * pieces.per_member * question.size <= kMostActions) chunks.push_back(chunk);
    if (count == 1) break;
  }
  if (chunks.empty()) chunks.push_back(pieces.elements);
  return chunks;
}

Choice choose(const Question& question, int64_t element_bytes, const LinkCosts& link, double summed_bytes_per_second,
              std::optional<Algorithm> only, int64_t count, double queue_seconds = 0) {
  const auto& algorithms = question.algorithms;
  if (only && std::find(algorithms.begin(), algorithms.end(), *only) == algorithms.end()) only.reset();
  LinkCosts queued = link;
  queued.latency_seconds += queue_seconds > 0 ? queue_seconds : kWaitSeconds;
  std::vector<Candidate> candidates;
  double least_link_seconds = std::numeric_limits<double>::infinity(), least_seconds = least_link_seconds;
  for (const Algorithm algorithm : algorithms) {
    if (only && algorithm != *only) continue;
    for (const int64_t chunk : chunks_of(question, algorithm, element_bytes)) {
      std::vector<Schedule> schedules;
      for (int member = 0; member < question.size; ++member)
        schedules.push_back(question.make(algorithm, member, chunk));
      const double link_seconds = busiest_seconds(schedules, link, element_bytes);
      const auto seconds_over = [&](const LinkCosts& costs) {
        return simulate(schedules, costs, summed_bytes_per_second / static_cast<double>(sizeof(float)), element_bytes) +
               static_cast<double>(count - 1) * link_seconds;
      };
      candidates.push_back({.choice = {algorithm, chunk, seconds_over(link)},
                            .link_seconds = link_seconds,
                            .queued_seconds = seconds_over(queued)});
      least_link_seconds = std::min(least_link_seconds, link_seconds);
      least_seconds = std::min(least_seconds, candidates.back().choice.seconds);
    }
  }
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    const bool is_dear = queue_seconds > 0 ? candidate.link_seconds > kLittleMore * least_link_seconds
                                           : candidate.choice.seconds > kLittleMore * least_seconds;
    if (is_dear) continue;
    // Larger chunks are fewer messages, which cost more than the link's time.
    const bool is_coarser = best != nullptr && best->choice.algorithm == candidate.choice.algorithm &&
                            candidate.choice.chunk > best->choice.chunk;
    if (best == nullptr || candidate.queued_seconds < (is_coarser ? kNearEnough : 1) * best->queued_seconds)
      best = &candidate;
  }
  check(best != nullptr, "no algorithm for a collective");
  return best->choice;
}

Question from_or_to_root(int size, int root, int64_t elements,
                         Schedule (*make)(Algorithm, int, int, int, int64_t, int64_t)) {
  return {.size = size,
          .algorithms = broadcast_algorithms(),
          .pieces = [=](Algorithm algorithm) -> Pieces {
            return {algorithm == Algorithm::direct_exchange ? 0 : std::max<int64_t>(elements, 1), 1};
          },
          .make = [=](Algorithm algorithm, int member,
                      int64_t chunk) { return make(algorithm, member, size, root, elements, chunk); }};
}

}  // namespace

Choice choose_algorithm(int size, int64_t elements, int64_t element_bytes, const LinkCosts& link,
                        double summed_bytes_per_second, std::optional<Algorithm> only, int64_t count,
                        double queue_seconds) {
  // Sums that are rounded on their way, but not where they stay, would differ between members.
  const bool doubling_is_exact = element_bytes == 4 || size <= 2;
  if (only == Algorithm::recursive_doubling && !doubling_is_exact) only = Algorithm::halving_doubling;
  std::vector<Algorithm> algorithms = all_algorithms();
  if (!doubling_is_exact) std::erase(algorithms, Algorithm::recursive_doubling);
  const Question question{
      .size = size,
      .algorithms = algorithms,
      .pieces = [=](Algorithm algorithm) -> Pieces {
        if (!is_chunked(algorithm)) return {};
        if (algorithm == Algorithm::ring) return {std::max<int64_t>(elements / size, 1), int64_t{2} * size};
        return {std::max<int64_t>(elements / 2, 1), 4};
      },
      .make = [=](Algorithm algorithm, int member,
                  int64_t chunk) { return make_schedule(algorithm, member, size, elements, chunk); }};
  return choose(question, element_bytes, link, summed_bytes_per_second, only, count, queue_seconds);
}

Choice choose_gather(const std::vector<int64_t>& begins, int64_t element_bytes, const LinkCosts& link,
                     std::optional<Algorithm> only) {
  const Question question{.size = static_cast<int>(begins.size()) - 1,
                          .algorithms = all_gather_algorithms(),
                          .pieces = [](Algorithm) { return Pieces{}; },
                          .make = [&](Algorithm algorithm, int member,
                                      int64_t) { return make_gather_schedule(algorithm, member, begins); }};
  return choose(question, element_bytes, link, /*summed_bytes_per_second=*/4, only, 1);
}

Choice choose_reduce_scatter(const std::vector<int64_t>& begins, int64_t element_bytes, const LinkCosts& link,
                             double summed_bytes_per_second, std::optional<Algorithm> only) {
  const int size = static_cast<int>(begins.size()) - 1;
  const Question question{
      .size = size,
      .algorithms = all_gather_algorithms(),
      .pieces = [&](Algorithm algorithm) -> Pieces {
        return {algorithm == Algorithm::ring ? std::max<int64_t>(begins.back() / size, 1) : 0, size - 1};
      },
      .make = [&](Algorithm algorithm, int member,
                  int64_t chunk) { return make_reduce_scatter_schedule(algorithm, member, begins, chunk); }};
  return choose(question, element_bytes, link, summed_bytes_per_second, only, 1);
}

Choice choose_broadcast(int size, int root, int64_t elements, int64_t element_bytes, const LinkCosts& link,
                        std::optional<Algorithm> only, int64_t count) {
  return choose(from_or_to_root(size, root, elements, make_broadcast_schedule), element_bytes, link,
                /*summed_bytes_per_second=*/1, only, count);
}

Choice choose_reduction(int size, int root, int64_t elements, int64_t element_bytes, const LinkCosts& link,
                        double summed_bytes_per_second, std::optional<Algorithm> only, int64_t count) {
  return choose(from_or_to_root(size, root, elements, make_reduction_schedule), element_bytes, link,
                summed_bytes_per_second, only, count);
}

}  // namespace weft::comm
