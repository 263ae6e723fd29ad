#include "weft/data/dataset/stratified_split.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/rng.h"
#include "weft/data/dataset/permutation.h"

namespace weft::data {

std::vector<bool> stratified_split(std::span<const int32_t> strata, double fraction, uint64_t seed) {
  std::map<int32_t, std::vector<size_t>> members;
  for (size_t at = 0; at < strata.size(); ++at) members[strata[at]].push_back(at);
  std::vector<bool> is_test(strata.size(), false);
  const uint64_t key = mix(seed, hash_name("split"));
  for (const auto& [stratum, samples] : members) {
    const auto size = static_cast<int64_t>(samples.size());
    const auto tests = std::min<int64_t>(std::llround(fraction * static_cast<double>(size)), size - 1);
    const Permutation order(size, mix(key, static_cast<uint64_t>(stratum)));
    for (int64_t at = 0; at < tests; ++at) is_test[samples[static_cast<size_t>(order[at])]] = true;
  }
  return is_test;
}

std::vector<int32_t> strata_of(std::span<const std::string_view> labels) {
  std::map<std::string_view, int32_t> numbers;
  for (const std::string_view label : labels) numbers.emplace(label, 0);
  int32_t next = 0;
  for (auto& [label, number] : numbers) number = next++;
  std::vector<int32_t> strata;
  for (const std::string_view label : labels) strata.push_back(numbers[label]);
  return strata;
}

}  // namespace weft::data
