// Functions with known least values, and what a search finds of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "weft/tune/search.h"

namespace weft::tune_tests {

using tune::number_of;
using tune::value_of;
using tune::Values;

struct Problem {
  tune::Space space;
  std::function<double(const Values&)> function;
  double least = 0;
};

inline Problem branin() {
  return {tune::Space({tune::real("x", -5, 10), tune::real("y", 0, 15)}),
          [](const Values& at) {
            const double x = number_of(at, "x"), y = number_of(at, "y"), pi = 3.14159265358979323846;
            const double a = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
            return a * a + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
          },
          0.39788735772973816};
}

inline Problem hartmann6() {
  std::vector<tune::Dimension> dimensions;
  for (int index = 0; index < 6; ++index) dimensions.push_back(tune::real("x" + std::to_string(index), 0, 1));
  return {
      tune::Space(dimensions),
      [](const Values& at) {
        constexpr double alpha[] = {1.0, 1.2, 3.0, 3.2};
        constexpr double a[4][6] = {
            {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
        constexpr double p[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                    {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                    {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                    {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
        double sum = 0;
        for (int row = 0; row < 4; ++row) {
          double exponent = 0;
          for (int index = 0; index < 6; ++index) {
            const double distance = number_of(at, "x" + std::to_string(index)) - p[row][index];
            exponent += a[row][index] * distance * distance;
          }
          sum -= alpha[row] * std::exp(-exponent);
        }
        return sum;
      },
      -3.32236801141551};
}

/// Numbers on a logarithmic scale, integers and a choice, all of which matter.
inline Problem mixed() {
  return {
      tune::Space({tune::log_real("rate", 1e-5, 1), tune::integer("layers", 1, 12), tune::log_integer("width", 8, 1024),
                   tune::choice("kind", {std::string("a"), std::string("b"), std::string("c"), std::string("d")})}),
      [](const Values& at) {
        const double rate = std::log10(number_of(at, "rate")) + 2.5, layers = number_of(at, "layers") - 7;
        const double width = std::log2(number_of(at, "width") / 128);
        const auto kind = std::get<std::string>(value_of(at, "kind"));
        const double of_kind = kind == "c" ? 0 : kind == "b" ? 0.5 : 1;
        return rate * rate + 0.05 * layers * layers + 0.1 * width * width + of_kind;
      },
      0};
}

/// Each of two branches has its own dimension; the better one has the narrower valley.
inline Problem conditional() {
  const KeyValue one = std::string("one"), two = std::string("two");
  return {tune::Space({tune::choice("branch", {one, two}), tune::real("x", 0, 1).when("branch", {one}),
                       tune::log_real("y", 1e-4, 1).when("branch", {two}), tune::real("z", -1, 1)}),
          [](const Values& at) {
            const double z = number_of(at, "z") - 0.3;
            if (tune::has_value(at, "x")) return 0.5 + std::abs(number_of(at, "x") - 0.7) + z * z;
            const double y = std::log10(number_of(at, "y")) + 2;
            return y * y + z * z;
          },
          0};
}

/// How far above the least value the best of so many trials is.
/// What searchers that train a network compute with.
inline const Library& library() {
  static const Library library = standard_library();
  return library;
}

inline double regret(const Problem& problem, const std::string& searcher, int trials, int64_t seed) {
  tune::Search search(problem.space, {.searcher = searcher, .seed = seed, .options = {.library = &library()}});
  for (int trial = 0; trial < trials; ++trial) {
    const auto asked = search.ask();
    if (!asked) break;
    search.tell(asked->number, {problem.function(asked->values)});
  }
  return search.best()->losses.front() - problem.least;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

inline double median_regret(const Problem& problem, const std::string& searcher, int trials, int seeds = 15) {
  std::vector<double> regrets;
  for (int seed = 1; seed <= seeds; ++seed) regrets.push_back(regret(problem, searcher, trials, seed));
  return median(std::move(regrets));
}

}  // namespace weft::tune_tests
