// NSGA-II: Deb, Pratap, Agarwal and Meyarivan, IEEE Trans. Evolutionary Computation 6 (2002). Simulated binary
// crossover and polynomial mutation in unit coordinates. The parents of each generation are computed anew from the
// trials before.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/base/error.h"
#include "weft/tune/searchers/entries.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

namespace {

constexpr double kIndex = 20;  // of the distributions of children: the larger, the closer to their parents
constexpr double kCrossover = 0.9;

/// A finished trial among others.
struct Member {
  size_t trial = 0;
  size_t rank = 0;      // of its front, from 0
  double distance = 0;  // to its neighbours on the front: infinite at the ends
};

/// Splits members into fronts: each holds what only members of earlier fronts dominate.
std::vector<std::vector<size_t>> fronts_of(const History& history, const std::vector<size_t>& trials) {
  std::vector<std::vector<size_t>> fronts;
  std::vector<size_t> left = trials;
  while (!left.empty()) {
    std::vector<size_t> front, rest;
    for (const size_t trial : left) {
      const bool is_beaten = std::any_of(left.begin(), left.end(), [&](size_t other) {
        return dominates(history[other].losses, history[trial].losses);
      });
      (is_beaten ? rest : front).push_back(trial);
    }
    fronts.push_back(std::move(front));
    left = std::move(rest);
  }
  return fronts;
}

/// How far from each other the members of a front are.
std::vector<Member> with_distances(const History& history, const std::vector<size_t>& front, size_t rank) {
  std::vector<Member> members;
  for (const size_t trial : front) members.push_back({trial, rank, 0});
  const size_t objectives = history[front.front()].losses.size();
  for (size_t objective = 0; objective < objectives; ++objective) {
    const auto loss = [&](const Member& member) { return history[member.trial].losses[objective]; };
    std::stable_sort(members.begin(), members.end(),
                     [&](const Member& a, const Member& b) { return loss(a) < loss(b); });
    const double range = loss(members.back()) - loss(members.front());
    members.front().distance = members.back().distance = std::numeric_limits<double>::infinity();
    for (size_t place = 1; place + 1 < members.size() && range > 0; ++place)
      members[place].distance += (loss(members[place + 1]) - loss(members[place - 1])) / range;
  }
  return members;
}

bool is_better(const Member& a, const Member& b) {
  return a.rank != b.rank ? a.rank < b.rank : a.distance > b.distance;
}

/// The best of so many.
std::vector<Member> select(const History& history, const std::vector<size_t>& trials, size_t count) {
  std::vector<Member> selected;
  const auto fronts = fronts_of(history, trials);
  for (size_t rank = 0; rank < fronts.size() && selected.size() < count; ++rank) {
    std::vector<Member> members = with_distances(history, fronts[rank], rank);
    std::stable_sort(members.begin(), members.end(), is_better);
    for (const Member& member : members)
      if (selected.size() < count) selected.push_back(member);
  }
  return selected;
}

class NsgaSearcher : public Searcher {
 public:
  explicit NsgaSearcher(size_t population) : population_(population) {}

  std::optional<Proposal> ask(const SearchState& state) const override {
    std::vector<Member> parents;
    int64_t generation = 0;
    while (const auto ended = ended_of_generation(state.history, generation)) {
      std::vector<size_t> all = *ended;
      for (const Member& parent : parents) all.push_back(parent.trial);
      parents = select(state.history, all, population_);
      ++generation;
    }
    const size_t number = state.history.size();
    if (parents.size() < 2)
      return Proposal{state.space.from_unit(sobol_point(state.space.size(), static_cast<uint32_t>(number), state.seed)),
                      generation};
    Random random(state.seed, static_cast<int64_t>(number));
    return Proposal{child(state, parents, random), generation};
  }

 private:
  /// The finished trials of a generation; nullopt where too few have ended.
  std::optional<std::vector<size_t>> ended_of_generation(const History& history, int64_t generation) const {
    std::vector<size_t> finished;
    size_t ended = 0;
    for (size_t number = 0; number < history.size() && ended < population_; ++number) {
      const Trial& trial = history[number];
      if (trial.generation != generation || trial.state == Trial::State::running) continue;
      ++ended;
      if (trial.is_finished()) finished.push_back(number);
    }
    return ended >= population_ ? std::optional(finished) : std::nullopt;
  }

  /// The better of two by chance.
  static const Member& tournament(const std::vector<Member>& parents, Random& random) {
    const Member& a = parents[random.below(parents.size())];
    const Member& b = parents[random.below(parents.size())];
    return is_better(b, a) ? b : a;
  }

  static Point child(const SearchState& state, const std::vector<Member>& parents, Random& random) {
    const Space& space = state.space;
    const Point& first = state.history[tournament(parents, random).trial].point;
    const Point& second = state.history[tournament(parents, random).trial].point;
    const bool crosses = random.uniform() < kCrossover;
    Point point(space.size());
    for (size_t index = 0; index < space.size(); ++index) {
      if (!space.is_active(point, index)) continue;
      const bool takes_second = random.uniform() < 0.5;
      const std::optional<double>& own = crosses && takes_second ? second[index] : first[index];
      const std::optional<double>& other = crosses && takes_second ? first[index] : second[index];
      const bool mutates = random.uniform() < 1 / static_cast<double>(space.size());
      if (!own || (mutates && space[index].kind == Dimension::Kind::choice)) {
        point[index] = space.from_unit(index, random.uniform());
        continue;
      }
      if (space[index].kind == Dimension::Kind::choice) {
        point[index] = own;
        continue;
      }
      double unit = space.to_unit(index, *own);
      if (crosses && other) unit = crossed(unit, space.to_unit(index, *other), random);
      if (mutates) unit = mutated(unit, random);
      point[index] = space.from_unit(index, unit);
    }
    return point;
  }

  /// Simulated binary crossover, in half of the dimensions.
  static double crossed(double own, double other, Random& random) {
    if (random.uniform() < 0.5) return own;
    const double u = random.uniform();
    const double beta = std::pow(u <= 0.5 ? 2 * u : 1 / (2 * (1 - u)), 1 / (kIndex + 1));
    return std::clamp(0.5 * ((1 + beta) * own + (1 - beta) * other), 0.0, 1.0);
  }

  /// Polynomial mutation.
  static double mutated(double unit, Random& random) {
    const double u = random.uniform(), power = 1 / (kIndex + 1);
    const double step = u < 0.5 ? std::pow(2 * u + (1 - 2 * u) * std::pow(1 - unit, kIndex + 1), power) - 1
                                : 1 - std::pow(2 * (1 - u) + (2 * u - 1) * std::pow(unit, kIndex + 1), power);
    return std::clamp(unit + step, 0.0, 1.0);
  }

  size_t population_;
};

}  // namespace

std::unique_ptr<Searcher> make_nsga_searcher(const SearcherOptions& options) {
  constexpr int64_t kPopulation = 24;
  if (options.population != 0 && options.population < 4)
    fail(ErrorKind::usage, "a population of {} is too small for nsga2; give at least 4", options.population);
  return std::make_unique<NsgaSearcher>(static_cast<size_t>(options.population > 0 ? options.population : kPopulation));
}

}  // namespace weft::tune
