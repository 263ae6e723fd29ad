#include "weft/data/target_checksum.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <memory>

namespace weft::data {

std::string target_checksum(const Dataset& dataset) {
  constexpr int64_t kMost = 1 << 16;
  if (dataset.info().task == Task::segmentation) return "";
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  const auto bytes = static_cast<size_t>(dataset.target_bytes());
  std::vector<int64_t> target((bytes + 7) / 8);  // aligned for every type
  const std::span<uint8_t> view(reinterpret_cast<uint8_t*>(target.data()), bytes);
  const int64_t count = std::min(dataset.size(), kMost);
  for (int64_t at = 0; at < count; ++at) {
    dataset.get_target({.index = at * dataset.size() / count, .pass = 0}, view);
    XXH3_64bits_update(state.get(), view.data(), view.size());
  }
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

}  // namespace weft::data
