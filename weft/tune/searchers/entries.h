// The searchers, one source each.
#pragma once

#include "weft/tune/searchers/searcher.h"

namespace weft::tune {

std::unique_ptr<Searcher> make_automatic_searcher(const SearcherOptions& options);
std::unique_ptr<Searcher> make_random_searcher(const SearcherOptions& options);
std::unique_ptr<Searcher> make_grid_searcher(const SearcherOptions& options);
std::unique_ptr<Searcher> make_sobol_searcher(const SearcherOptions& options);
std::unique_ptr<Searcher> make_tpe_searcher(const SearcherOptions& options);
std::unique_ptr<Searcher> make_bayesian_searcher(const SearcherOptions& options);
std::unique_ptr<Searcher> make_cma_es_searcher(const SearcherOptions& options);
std::unique_ptr<Searcher> make_nsga_searcher(const SearcherOptions& options);
std::unique_ptr<Searcher> make_ppo_searcher(const SearcherOptions& options);

/// Every point of a grid with so many values of each range of real numbers, and of integers where these have more; 0:
/// of all their values, where there are no real ranges. Gives up above `most` points: nullopt.
std::optional<std::vector<Point>> grid_points(const Space& space, int64_t levels, size_t most);

/// Logarithm of the expected improvement by a normal distribution of deviation 1 whose mean lies `z` below the best.
double log_improvement(double z);

/// Point number `index` of a scrambled Sobol sequence, in unit coordinates.
std::vector<double> sobol_point(size_t dimensions, uint32_t index, int64_t seed);

}  // namespace weft::tune
