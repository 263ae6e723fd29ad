#include "weft/passes/memory/recompute_search.h"

#include <algorithm>
#include <queue>

#include "weft/base/rng.h"

namespace weft::passes {

namespace {

constexpr int32_t kShortestPause = 2;          // steps
constexpr int64_t kSmallestShare = 1024;       // of the largest buffer: smaller ones free nothing worth a node
constexpr double kUnknown = 1e300;             // score
constexpr int kIdleRounds = 300;               // of improvement without any
constexpr int64_t kEventBudget = 100'000'000;  // of all simulations: a second or two
constexpr int64_t kMendBudget = 10'000'000;    // where a choice for nearly the same limit is known

/// Fates that change together.
using Move = std::vector<std::pair<int32_t, Fate>>;

class Search {
 public:
  Search(const RecomputeProblem& problem, int64_t limit_bytes)
      : problem_(problem), simulator_(problem), limit_(limit_bytes), random_(0), is_banned_(problem.buffers.size()) {
    int64_t largest = 0;
    for (const RecomputeBuffer& buffer : problem.buffers) largest = std::max(largest, buffer.bytes);
    for (size_t index = 0; index < problem.buffers.size(); ++index) {
      const auto buffer = static_cast<int32_t>(index);
      if (simulator_.writer(buffer) < 0) continue;
      if (problem.buffers[index].outlives_step || simulator_.pause(buffer) < kShortestPause) continue;
      if (!may_be(buffer, Fate::again) && !may_be(buffer, Fate::offloaded)) continue;
      if (problem.buffers[index].bytes * kSmallestShare < largest) continue;
      candidates_.push_back(buffer);
      has_file_ = has_file_ || may_be(buffer, Fate::offloaded);
    }
    std::sort(candidates_.begin(), candidates_.end(),
              [&](int32_t a, int32_t b) { return simulator_.writer(a) < simulator_.writer(b); });
    list_moves();
  }

  RecomputeChoice run() {
    for (const bool singly : {false, true}) {
      is_single_ = singly;
      for (const Fate start : {Fate::stays, Fate::again, Fate::offloaded})
        if (start != Fate::offloaded || has_file_) descend(all(start));
    }
    is_single_ = false;
    // A limit that is hard to meet is met more easily by whoever aims lower first.
    for (const double share : {0.8, 0.6, 0.4, 0.2, 0.0})
      for (const Fate start : {Fate::stays, Fate::again})
        if (best_.outcome.excess > 0) descend_by(share, all(start));
    improve();
    return finish();
  }

  RecomputeChoice mend(const std::vector<Fate>& near) {
    descend(near);
    if (best_.outcome.excess > 0) return run();
    budget_ = kMendBudget;
    improve();
    return finish();
  }

 private:
  RecomputeChoice finish() {
    simulate(best_.fates);
    best_.events = simulator_.events();
    return std::move(best_);
  }

  /// What passes by does not stay for the sake of what may be made again.
  std::vector<Fate> all(Fate fate) const {
    std::vector<Fate> fates(problem_.buffers.size(), Fate::stays);
    for (const int32_t candidate : candidates_) {
      const Fate wanted = simulator_.is_passing(candidate) ? Fate::again : fate;
      if (may_be(candidate, wanted)) fates[static_cast<size_t>(candidate)] = wanted;
    }
    return fates;
  }

  bool may_be(int32_t buffer, Fate fate) const {
    if (fate == Fate::stays) return true;
    if (fate == Fate::offloaded) return problem_.buffers[static_cast<size_t>(buffer)].offload_seconds >= 0;
    const RecomputeStep& writer = problem_.steps[static_cast<size_t>(simulator_.writer(buffer))];
    const auto& made = writer.writes_again;
    return writer.is_repeatable && std::find(made.begin(), made.end(), buffer) != made.end();
  }

  /// Of one buffer alone.
  double seconds_of(int32_t buffer, Fate fate) const {
    if (fate == Fate::offloaded) return problem_.buffers[static_cast<size_t>(buffer)].offload_seconds;
    return problem_.steps[static_cast<size_t>(simulator_.writer(buffer))].seconds_again;
  }

  void list_moves() {
    std::vector<bool> is_candidate(problem_.buffers.size(), false);
    for (const int32_t candidate : candidates_) {
      keeps_.push_back({{candidate, Fate::stays}});
      if (may_be(candidate, Fate::offloaded)) drops_.push_back({{candidate, Fate::offloaded}});
      if (!may_be(candidate, Fate::again)) continue;
      is_candidate[static_cast<size_t>(candidate)] = true;
      drops_.push_back({{candidate, Fate::again}});
      drops_each_time_.push_back({{candidate, Fate::again_each_time}});
    }
    // All results of a step together: one repetition makes them all. And where a result takes the place of an operand
    // that passes by, this operand stays for it.
    for (const RecomputeStep& step : problem_.steps) {
      Move results;
      for (const int32_t result : step.writes_again)
        if (is_candidate[static_cast<size_t>(result)]) results.emplace_back(result, Fate::again);
      if (results.empty()) continue;
      if (results.size() > 1) drops_.push_back(results);
      for (const int32_t operand : step.reads_again)
        if (is_candidate[static_cast<size_t>(operand)] && simulator_.is_passing(operand)) {
          drops_.push_back(results);
          drops_.back().emplace_back(operand, Fate::stays);
        }
    }
  }

  RecomputeOutcome simulate(const std::vector<Fate>& fates) {
    const RecomputeOutcome outcome = simulator_.run(fates, limit_);
    events_ += static_cast<int64_t>(simulator_.events().size());
    return outcome;
  }

  bool is_spent() const { return events_ > budget_; }

  static bool is_better(const RecomputeOutcome& a, const RecomputeOutcome& b) {
    if ((a.excess == 0) != (b.excess == 0)) return a.excess == 0;
    return a.excess == 0 ? a.seconds < b.seconds : a.peak_bytes < b.peak_bytes;
  }

  void keep_if_better(const std::vector<Fate>& fates, const RecomputeOutcome& outcome) {
    if (!best_.fates.empty() && !is_better(outcome, best_.outcome)) return;
    best_.fates = fates;
    best_.outcome = outcome;
  }

  /// Bytes above the limit saved per second that it costs; what saves both is taken first.
  static double score(const RecomputeOutcome& before, const RecomputeOutcome& after) {
    const double saved = before.excess - after.excess, seconds = after.seconds - before.seconds;
    if (saved <= 0) return 0;
    return saved / std::max(seconds, 1e-9);
  }

  /// Makes one move after the other, always the one of the best score, until everything fits or nothing helps. Scores
  /// are computed anew only when they come first (Minoux 1978, "Accelerated greedy algorithms").
  RecomputeOutcome move_greedily(std::vector<Fate>& fates, const std::vector<Move>& moves) {
    RecomputeOutcome now = simulate(fates);
    struct Entry {
      double score;
      int32_t move;
      int version;
      bool operator<(const Entry& other) const {
        return score != other.score ? score < other.score : move > other.move;
      }
    };
    for (bool progress = true; progress && now.excess > 0 && !is_spent();) {
      progress = false;
      int version = 0;
      std::priority_queue<Entry> queue;
      for (size_t index = 0; index < moves.size(); ++index)
        if (is_open(fates, moves[index])) queue.push({kUnknown, static_cast<int32_t>(index), -1});
      while (!queue.empty() && now.excess > 0 && !is_spent()) {
        const Entry top = queue.top();
        queue.pop();
        const Move& move = moves[static_cast<size_t>(top.move)];
        if (!is_open(fates, move)) continue;
        const Move back = apply(fates, move);
        const RecomputeOutcome then = simulate(fates);
        const double now_worth = score(now, then);
        const bool is_best = top.version == version || queue.empty() || now_worth >= queue.top().score;
        if (now_worth > 0 && is_best) {
          now = then;
          ++version;
          progress = true;
          continue;
        }
        apply(fates, back);
        if (now_worth > 0) queue.push({now_worth, top.move, version});
      }
    }
    return now;
  }

  /// Does the move change anything, and nothing that is banned?
  bool is_open(const std::vector<Fate>& fates, const Move& move) const {
    bool changes = false;
    if (is_single_ && move.size() > 1) return false;
    for (const auto& [buffer, fate] : move) {
      const auto b = static_cast<size_t>(buffer);
      if (fates[b] != fate && is_banned_[b]) return false;
      changes |= fates[b] != fate;
    }
    return changes;
  }

  /// What undoes it.
  static Move apply(std::vector<Fate>& fates, const Move& move) {
    Move back = move;
    for (auto& [buffer, fate] : back) std::swap(fates[static_cast<size_t>(buffer)], fate);
    return back;
  }

  /// Takes back what is not needed, the costliest first.
  RecomputeOutcome prune(std::vector<Fate>& fates, RecomputeOutcome now) {
    for (const Fate to : {Fate::stays, Fate::again}) {
      std::vector<std::pair<double, int32_t>> dropped;
      for (const int32_t buffer : candidates_) {
        const Fate fate = fates[static_cast<size_t>(buffer)];
        if (fate == Fate::stays || fate == to || !may_be(buffer, to)) continue;
        dropped.emplace_back(-seconds_of(buffer, fate), buffer);
      }
      std::sort(dropped.begin(), dropped.end());
      for (const auto& [seconds, buffer] : dropped) {
        if (is_spent()) return now;
        const Fate fate = fates[static_cast<size_t>(buffer)];
        fates[static_cast<size_t>(buffer)] = to;
        const RecomputeOutcome then = simulate(fates);
        if (then.excess == 0 && then.seconds <= now.seconds)
          now = then;
        else
          fates[static_cast<size_t>(buffer)] = fate;
      }
    }
    return now;
  }

  RecomputeOutcome change_both_ways(std::vector<Fate>& fates) {
    RecomputeOutcome now;
    for (const std::vector<Move>* moves : {&drops_, &keeps_, &drops_, &drops_each_time_})
      now = move_greedily(fates, *moves);
    return now;
  }

  RecomputeOutcome descend(std::vector<Fate> fates) {
    RecomputeOutcome now = simulate(fates);
    keep_if_better(fates, now);
    if (now.excess > 0) now = change_both_ways(fates);
    if (now.excess == 0) now = prune(fates, now);
    keep_if_better(fates, now);
    return now;
  }

  void descend_by(double share, std::vector<Fate> fates) {
    const int64_t limit = limit_;
    limit_ = static_cast<int64_t>(share * static_cast<double>(limit));
    change_both_ways(fates);
    limit_ = limit;
    descend(std::move(fates));
  }

  /// Forgets some choices and finds them anew: those for a stretch of the order, or a few that must not come back.
  void improve() {
    if (candidates_.empty()) return;
    const auto count = static_cast<uint32_t>(candidates_.size());
    int idle = 0;
    const int64_t hopeless = events_ + std::max(events_, kMendBudget);  // as much again as the descents took
    const auto is_worth_more = [&] {
      return best_.outcome.excess > 0 ? events_ <= hopeless : best_.outcome.seconds > 0;
    };
    while (!is_spent() && is_worth_more() && idle < kIdleRounds) {
      std::vector<Fate> fates = best_.fates;
      const uint32_t way = random_.below(has_file_ ? 5 : 4);
      if (way < 2 || way == 4) {
        const uint32_t length = 1 + random_.below(std::max<uint32_t>(2, count / 3)), begin = random_.below(count);
        const Fate fate = way == 0 ? Fate::again : way == 1 ? Fate::stays : Fate::offloaded;
        for (uint32_t at = begin; at < std::min(count, begin + length); ++at)
          if (may_be(candidates_[at], fate)) fates[static_cast<size_t>(candidates_[at])] = fate;
      } else {
        for (uint32_t banned = 1 + random_.below(3); banned-- > 0;)
          if (const int32_t buffer = drawn(fates); buffer >= 0) {
            fates[static_cast<size_t>(buffer)] = Fate::stays;
            is_banned_[static_cast<size_t>(buffer)] = true;
          }
      }
      const RecomputeOutcome before = best_.outcome;
      is_single_ = random_.below(3) == 0;
      if (before.excess > 0)
        descend_by(0.1 * random_.below(11), std::move(fates));
      else
        descend(std::move(fates));
      idle = is_better(best_.outcome, before) ? 0 : idle + 1;
      is_banned_.assign(is_banned_.size(), false);
    }
  }

  /// One of those that are dropped; -1: there is none.
  int32_t drawn(const std::vector<Fate>& fates) {
    std::vector<int32_t> dropped;
    for (const int32_t buffer : candidates_)
      if (fates[static_cast<size_t>(buffer)] != Fate::stays) dropped.push_back(buffer);
    return dropped.empty() ? -1 : dropped[random_.below(static_cast<uint32_t>(dropped.size()))];
  }

  const RecomputeProblem& problem_;
  RecomputeSimulator simulator_;
  int64_t limit_;
  RandomStream random_;
  std::vector<int32_t> candidates_;  // in order of their writers
  std::vector<Move> drops_, keeps_, drops_each_time_;
  bool is_single_ = false;       // only moves of one buffer
  bool has_file_ = false;        // some may be offloaded
  std::vector<bool> is_banned_;  // per buffer: stays for now
  RecomputeChoice best_;
  int64_t budget_ = kEventBudget, events_ = 0;  // simulated so far
};

}  // namespace

RecomputeChoice choose_recompute(const RecomputeProblem& problem, int64_t limit_bytes) {
  return Search(problem, limit_bytes).run();
}

RecomputeChoice mend_recompute(const RecomputeProblem& problem, int64_t limit_bytes, const std::vector<Fate>& near) {
  return Search(problem, limit_bytes).mend(near);
}

}  // namespace weft::passes
