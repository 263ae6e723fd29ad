// Covariance matrix adaptation: Hansen, "The CMA Evolution Strategy: A Tutorial" (2016), with negative weights.
// Integers have a margin, so that none is left for good while others are likely: Hamano, Saito, Nomura and Shirakawa,
// "CMA-ES with margin", GECCO 2022. The state of each generation is computed anew from the trials of those before.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/symmetric_eigen.h"
#include "weft/tune/searchers/entries.h"
#include "weft/tune/searchers/normal.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

namespace {

using Vector = std::vector<double>;

/// The constants of the tutorial's table 1 for so many dimensions and points of a generation.
struct StrategyConstants {
  StrategyConstants(size_t size, size_t population);
  size_t population;
  Vector weights;   // of ranks, the negative ones behind
  double mass = 0;  // of the positive ones: 1 / sum of squares
  double c_sigma, d_sigma, c_c, c_1, c_mu;
  double expected_length;  // of a standard normal vector
};

StrategyConstants::StrategyConstants(size_t size, size_t points) : population(points) {
  const auto n = static_cast<double>(size), lambda = static_cast<double>(points);
  const size_t parents = points / 2;
  Vector raw(points);
  for (size_t rank = 0; rank < points; ++rank)
    raw[rank] = std::log((lambda + 1) / 2) - std::log(static_cast<double>(rank + 1));
  const auto mass_of = [](const double* first, const double* last) {
    double sum = 0, squares = 0;
    for (; first != last; ++first) {
      sum += *first;
      squares += *first * *first;
    }
    return sum * sum / squares;
  };
  mass = mass_of(raw.data(), raw.data() + parents);
  const double negative_mass = mass_of(raw.data() + parents, raw.data() + points);
  c_sigma = (mass + 2) / (n + mass + 5);
  d_sigma = 1 + 2 * std::max(0.0, std::sqrt((mass - 1) / (n + 1)) - 1) + c_sigma;
  c_c = (4 + mass / n) / (n + 4 + 2 * mass / n);
  c_1 = 2 / ((n + 1.3) * (n + 1.3) + mass);
  c_mu = std::min(1 - c_1, 2 * (mass - 2 + 1 / mass) / ((n + 2) * (n + 2) + mass));
  expected_length = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
  const double positive = std::accumulate(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(parents), 0.0);
  double negative = 0;
  for (size_t rank = parents; rank < points; ++rank) negative -= std::min(0.0, raw[rank]);
  const double alpha = std::min({1 + c_1 / std::max(c_mu, 1e-12), 1 + 2 * negative_mass / (mass + 2),
                                 (1 - c_1 - c_mu) / (n * std::max(c_mu, 1e-12))});
  for (size_t rank = 0; rank < points; ++rank)
    weights.push_back(raw[rank] >= 0 ? raw[rank] / positive : negative > 0 ? raw[rank] * alpha / negative : 0);
}

struct Strategy {
  Vector mean;  // unit coordinates
  double sigma = 1.0 / 6;
  Vector covariance;  // [size,size]
  Vector path_sigma, path_c;
  Vector stretch;  // of integers, by their margin
  int64_t generation = 0;
  SymmetricEigen eigen;  // of the covariance

  size_t size() const { return mean.size(); }
};

Strategy first_strategy(size_t size) {
  Strategy s{.mean = Vector(size, 0.5),
             .covariance = Vector(size * size, 0.0),
             .path_sigma = Vector(size, 0.0),
             .path_c = Vector(size, 0.0),
             .stretch = Vector(size, 1.0),
             .eigen = {}};
  for (size_t index = 0; index < size; ++index) s.covariance[index * size + index] = 1;
  s.eigen = symmetric_eigen(s.covariance, static_cast<int64_t>(size));
  return s;
}

/// B D z: normal with the covariance.
Vector spread(const Strategy& s, const Vector& z) {
  Vector y(s.size(), 0.0);
  for (size_t value = 0; value < s.size(); ++value) {
    const double factor = std::sqrt(std::max(0.0, s.eigen.values[value])) * z[value];
    for (size_t index = 0; index < s.size(); ++index) y[index] += factor * s.eigen.vectors[value * s.size() + index];
  }
  return y;
}

/// B D^-1 B^T y
Vector whitened(const Strategy& s, const Vector& y) {
  Vector white(s.size(), 0.0);
  for (size_t value = 0; value < s.size(); ++value) {
    double along = 0;
    for (size_t index = 0; index < s.size(); ++index) along += s.eigen.vectors[value * s.size() + index] * y[index];
    along /= std::sqrt(std::max(1e-20, s.eigen.values[value]));
    for (size_t index = 0; index < s.size(); ++index) white[index] += along * s.eigen.vectors[value * s.size() + index];
  }
  return white;
}

/// The step of a trial, in units of sigma: a point outside of the space is drawn again, and at last put on its edge.
Vector step_of(const Strategy& s, int64_t seed, int64_t number) {
  Random random(seed, number);
  const auto unit_of = [&](const Vector& y, size_t index) {
    return s.mean[index] + s.stretch[index] * s.sigma * y[index];
  };
  Vector y;
  for (int attempt = 0; attempt < 100; ++attempt) {
    Vector z(s.size());
    for (double& value : z) value = random.normal();
    y = spread(s, z);
    bool is_inside = true;
    for (size_t index = 0; index < s.size(); ++index) {
      const double unit = unit_of(y, index);
      is_inside &= unit >= 0 && unit <= 1;
    }
    if (is_inside) return y;
  }
  for (size_t index = 0; index < s.size(); ++index)
    y[index] = (std::clamp(unit_of(y, index), 0.0, 1.0) - s.mean[index]) / (s.stretch[index] * s.sigma);
  return y;
}

/// Sees to it that values of integers beside the most likely one keep a probability of at least `margin`.
void keep_margin(Strategy& s, const Space& space, double margin) {
  for (size_t index = 0; index < s.size(); ++index) {
    if (space[index].kind != Dimension::Kind::integer || space.count(index) < 2) continue;
    const double deviation = s.sigma * std::sqrt(s.covariance[index * s.size() + index]);
    const double coordinate = space.from_unit(index, s.mean[index]);
    const auto [low, high] = space.piece(index, coordinate);
    const bool is_first = coordinate <= space[index].low, is_last = coordinate >= space[index].high;
    double& mean = s.mean[index];
    if (is_first || is_last) {  // the other side is reached with the margin's probability
      const double edge = is_first ? high : low, most = normal_quantile(1 - margin) * s.stretch[index] * deviation;
      mean = edge + (is_first ? -1 : 1) * std::min(std::abs(mean - edge), most);
      continue;
    }
    const double width = s.stretch[index] * deviation;
    const double below = normal_probability((low - mean) / width), above = normal_probability((mean - high) / width);
    const double between = 1 - below - above;
    const double least_below = std::max(margin / 2, below), least_above = std::max(margin / 2, above);
    const double excess =
        (1 - least_below - least_above - between) / (least_below + least_above + between - 1.5 * margin);
    const double p_below = std::clamp(least_below + excess * (least_below - margin / 2), 1e-12, 0.499);
    const double p_above = std::clamp(least_above + excess * (least_above - margin / 2), 1e-12, 0.499);
    const double z_below = normal_quantile(1 - p_below), z_above = normal_quantile(1 - p_above);
    if (least_below == below && least_above == above) continue;
    s.stretch[index] = (high - low) / (deviation * (z_below + z_above));
    mean = (low * z_above + high * z_below) / (z_below + z_above);
  }
}

/// The next generation, from the steps of this one, the best first.
void advance(Strategy& s, const StrategyConstants& c, const std::vector<Vector>& steps, const Space& space) {
  const size_t n = s.size();
  Vector mean_step(n, 0.0);
  for (size_t rank = 0; rank < steps.size(); ++rank)
    if (c.weights[rank] > 0)
      for (size_t index = 0; index < n; ++index) mean_step[index] += c.weights[rank] * steps[rank][index];
  for (size_t index = 0; index < n; ++index)
    s.mean[index] = std::clamp(s.mean[index] + s.sigma * mean_step[index], 0.0, 1.0);

  const Vector white = whitened(s, mean_step);
  double length = 0;
  for (size_t index = 0; index < n; ++index) {
    s.path_sigma[index] =
        (1 - c.c_sigma) * s.path_sigma[index] + std::sqrt(c.c_sigma * (2 - c.c_sigma) * c.mass) * white[index];
    length += s.path_sigma[index] * s.path_sigma[index];
  }
  length = std::sqrt(length);
  ++s.generation;
  const double settled = std::sqrt(1 - std::pow(1 - c.c_sigma, 2.0 * static_cast<double>(s.generation)));
  const bool moves = length / settled < (1.4 + 2 / (static_cast<double>(n) + 1)) * c.expected_length;
  for (size_t index = 0; index < n; ++index)
    s.path_c[index] =
        (1 - c.c_c) * s.path_c[index] + (moves ? std::sqrt(c.c_c * (2 - c.c_c) * c.mass) * mean_step[index] : 0.0);

  const double held = moves ? 0 : c.c_1 * c.c_c * (2 - c.c_c);
  double weight_sum = 0;
  Vector weights = c.weights;
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    weight_sum += weights[rank];
    if (weights[rank] >= 0) continue;
    double square = 0;
    for (const double value : whitened(s, steps[rank])) square += value * value;
    weights[rank] *= static_cast<double>(n) / std::max(1e-12, square);
  }
  for (size_t row = 0; row < n; ++row)
    for (size_t column = 0; column < n; ++column) {
      double& entry = s.covariance[row * n + column];
      double of_steps = 0;
      for (size_t rank = 0; rank < steps.size(); ++rank)
        of_steps += weights[rank] * steps[rank][row] * steps[rank][column];
      entry = (1 + held - c.c_1 - c.c_mu * weight_sum) * entry + c.c_1 * s.path_c[row] * s.path_c[column] +
              c.c_mu * of_steps;
    }
  s.sigma = std::min(1.0, s.sigma * std::exp(c.c_sigma / c.d_sigma * (length / c.expected_length - 1)));
  s.eigen = symmetric_eigen(s.covariance, static_cast<int64_t>(n));
  keep_margin(s, space, 1 / (static_cast<double>(n) * static_cast<double>(c.population)));
}

class CmaEsSearcher : public Searcher {
 public:
  explicit CmaEsSearcher(int64_t population) : population_(population) {}

  void check(const Space& space) const override {
    for (const Dimension& d : space.dimensions()) {
      if (d.kind == Dimension::Kind::choice)
        fail(ErrorKind::usage, "cma-es searches numbers, and {} is a list of choices; take tpe or gp", d.name);
      if (d.condition)
        fail(ErrorKind::usage, "cma-es searches numbers, and {} is not always there; take tpe or gp", d.name);
    }
  }

  std::optional<Proposal> ask(const SearchState& state) const override {
    const size_t size = state.space.size();
    const auto population = population_ > 0 ? static_cast<size_t>(population_)
                                            : 4 + static_cast<size_t>(3 * std::log(static_cast<double>(size)));
    const StrategyConstants constants(size, population);
    Strategy strategy = first_strategy(size);
    while (const auto steps = steps_of_generation(state, strategy, population))
      advance(strategy, constants, *steps, state.space);
    const Vector y = step_of(strategy, state.seed, static_cast<int64_t>(state.history.size()));
    Vector units(size);
    for (size_t index = 0; index < size; ++index)
      units[index] = strategy.mean[index] + strategy.stretch[index] * strategy.sigma * y[index];
    return Proposal{state.space.from_unit(units), strategy.generation};
  }

 private:
  /// Of the strategy's generation, the best first; nullopt where too few of its trials have ended. Those that failed
  /// are the last.
  static std::optional<std::vector<Vector>> steps_of_generation(const SearchState& state, const Strategy& strategy,
                                                                size_t population) {
    std::vector<size_t> ended;
    for (size_t number = 0; number < state.history.size() && ended.size() < population; ++number) {
      const Trial& trial = state.history[number];
      if (trial.generation == strategy.generation && trial.state != Trial::State::running) ended.push_back(number);
    }
    if (ended.size() < population) return std::nullopt;
    const auto loss = [&](size_t number) {
      const Trial& trial = state.history[number];
      return trial.is_finished() ? trial.losses.front() : std::numeric_limits<double>::infinity();
    };
    std::stable_sort(ended.begin(), ended.end(), [&](size_t a, size_t b) { return loss(a) < loss(b); });
    std::vector<Vector> steps;
    for (const size_t number : ended) steps.push_back(step_of(strategy, state.seed, static_cast<int64_t>(number)));
    return steps;
  }

  int64_t population_;
};

}  // namespace

std::unique_ptr<Searcher> make_cma_es_searcher(const SearcherOptions& options) {
  if (options.population != 0 && options.population < 4)
    fail(ErrorKind::usage, "a generation of {} is too small for cma-es; give at least 4", options.population);
  return std::make_unique<CmaEsSearcher>(options.population);
}

}  // namespace weft::tune
