// Which algorithm a reduce-scatter, a broadcast or a sum at one rank takes: as in cost.h, by simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/comm/cost.h"

namespace weft::comm {

/// The cheapest for hosts of which each gets the sum of its piece; `only` that algorithm where it is given and can do
/// it. `begins` as in schedules/reduce_scatter.h.
Choice choose_reduce_scatter(const std::vector<int64_t>& begins, int64_t element_bytes, const LinkCosts& link,
                             double summed_bytes_per_second, std::optional<Algorithm> only = std::nullopt);

/// From the root to all, `count` times one after the other, each time so many elements. The seconds are those of all.
Choice choose_broadcast(int size, int root, int64_t elements, int64_t element_bytes, const LinkCosts& link,
                        std::optional<Algorithm> only = std::nullopt, int64_t count = 1);

/// From all to the root, summed.
Choice choose_reduction(int size, int root, int64_t elements, int64_t element_bytes, const LinkCosts& link,
                        double summed_bytes_per_second, std::optional<Algorithm> only = std::nullopt,
                        int64_t count = 1);

}  // namespace weft::comm
