// How many grains of a batch each rank computes, so that all are done as early as can be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::train {

/// Whole numbers, at least 1 each, whose sum is `grains`, such that the largest of number x seconds is the smallest
/// that there is. `seconds`: of a grain on each rank, above 0. There are at least as many grains as ranks. Takes
/// O(grains log ranks). Each grain goes to the rank that has done it first: as all grains of a rank take the same time,
/// no other assignment is done earlier.
std::vector<int64_t> assign_grains(int64_t grains, std::span<const double> seconds);

/// The largest of number x seconds.
double largest_time(std::span<const int64_t> grains, std::span<const double> seconds);

}  // namespace weft::train
