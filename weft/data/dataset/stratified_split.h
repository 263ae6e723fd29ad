// Which samples are set aside for testing, where the files do not say: the same share of every class.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weft::data {

/// For each sample, whether it is a test sample: of the n samples of each stratum round(fraction n) are, but at least
/// one stays for training. Which ones depends on the seed and on the samples' order only.
std::vector<bool> stratified_split(std::span<const int32_t> strata, double fraction, uint64_t seed);

/// The number of each label among the different ones, in their order.
std::vector<int32_t> strata_of(std::span<const std::string_view> labels);

}  // namespace weft::data
