#include "weft/comm/choose.h"

#include <algorithm>
#include <functional>

#include "weft/comm/schedules/broadcast.h"
#include "weft/comm/schedules/reduce_scatter.h"

namespace weft::comm {

namespace {

constexpr int64_t kSmallestChunkBytes = 16 << 10, kLargestChunkBytes = 4 << 20;
constexpr double kNearEnough = 1.02;
constexpr int64_t kMostActions = 200'000;  // simulated per candidate, of all members

/// What is to be chosen, as the search sees it.
struct Question {
  int size = 1;
  std::vector<Algorithm> algorithms;
  std::function<bool(Algorithm)> is_chunked;
  int64_t piece = 0;              // elements that chunks are of
  int64_t pieces_per_member = 1;  // that it sends
  std::function<Schedule(Algorithm, int member, int64_t chunk)> make;
};

std::vector<int64_t> chunks_of(const Question& question, Algorithm algorithm, int64_t element_bytes) {
  if (!question.is_chunked(algorithm)) return {0};
  std::vector<int64_t> chunks;
  for (int64_t bytes = kSmallestChunkBytes; bytes <= kLargestChunkBytes; bytes *= 4) {
    const int64_t chunk = bytes / element_bytes, count = std::max<int64_t>(1, question.piece / chunk);
    if (2 * count * question.pieces_per_member * question.size <= kMostActions) chunks.push_back(chunk);
    if (count == 1) break;
  }
  if (chunks.empty()) chunks.push_back(std::max<int64_t>(question.piece, 1));
  return chunks;
}

Choice choose(const Question& question, int64_t element_bytes, const LinkCosts& link, double summed_bytes_per_second,
              std::optional<Algorithm> only, int64_t count) {
  const auto& candidates = question.algorithms;
  if (only && std::find(candidates.begin(), candidates.end(), *only) == candidates.end()) only.reset();
  Choice best{.algorithm = candidates.front(), .chunk = 0, .seconds = -1};
  for (const Algorithm algorithm : candidates) {
    if (only && algorithm != *only) continue;
    for (const int64_t chunk : chunks_of(question, algorithm, element_bytes)) {
      std::vector<Schedule> schedules;
      for (int member = 0; member < question.size; ++member)
        schedules.push_back(question.make(algorithm, member, chunk));
      double seconds =
          simulate(schedules, link, summed_bytes_per_second / static_cast<double>(sizeof(float)), element_bytes);
      if (count > 1) seconds += static_cast<double>(count - 1) * busiest_seconds(schedules, link, element_bytes);
      // Larger chunks are fewer messages, which cost more than the link's time.
      const double enough =
          best.algorithm == algorithm && chunk > best.chunk ? kNearEnough * best.seconds : best.seconds;
      if (best.seconds < 0 || seconds < enough) best = {algorithm, chunk, seconds};
    }
  }
  return best;
}

Question from_or_to_root(int size, int root, int64_t elements,
                         Schedule (*make)(Algorithm, int, int, int, int64_t, int64_t)) {
  return {.size = size,
          .algorithms = broadcast_algorithms(),
          .is_chunked = [](Algorithm algorithm) { return algorithm != Algorithm::direct_exchange; },
          .piece = elements,
          .make = [=](Algorithm algorithm, int member,
                      int64_t chunk) { return make(algorithm, member, size, root, elements, chunk); }};
}

}  // namespace

Choice choose_reduce_scatter(const std::vector<int64_t>& begins, int64_t element_bytes, const LinkCosts& link,
                             double summed_bytes_per_second, std::optional<Algorithm> only) {
  const int size = static_cast<int>(begins.size()) - 1;
  const Question question{
      .size = size,
      .algorithms = all_gather_algorithms(),
      .is_chunked = [](Algorithm algorithm) { return algorithm == Algorithm::ring; },
      .piece = begins.back() / size,
      .pieces_per_member = size - 1,
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
