#include "weft/data/dataset/checksums.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <memory>

namespace weft::data {

namespace {

class Checksum {
 public:
  Checksum() { XXH3_64bits_reset(state_.get()); }
  /// Of what `read` writes into so many bytes, aligned for every type.
  template <typename Read>
  void add(int64_t bytes, Read&& read) {
    room_.assign(static_cast<size_t>((bytes + 7) / 8), 0);
    const std::span<uint8_t> view(reinterpret_cast<uint8_t*>(room_.data()), static_cast<size_t>(bytes));
    read(view);
    XXH3_64bits_update(state_.get(), view.data(), view.size());
  }
  std::string text() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

 private:
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_{XXH3_createState(), &XXH3_freeState};
  std::vector<int64_t> room_;
};

/// Visits `most` samples that are spread evenly, or all where there are fewer.
template <typename Visit>
void for_some(const Dataset& dataset, int64_t most, Visit&& visit) {
  const int64_t count = std::min(dataset.size(), most);
  for (int64_t at = 0; at < count; ++at) visit(SampleKey{.index = at * dataset.size() / count, .pass = 0});
}

}  // namespace

std::string target_checksum(const Dataset& dataset) {
  if (dataset.info().target_kind() == TargetKind::pixel_classes) return "";
  Checksum sum;
  for_some(dataset, 1 << 16, [&](const SampleKey& key) {
    sum.add(dataset.target_bytes(), [&](std::span<uint8_t> target) { dataset.get_target(key, target); });
  });
  return sum.text();
}

std::string sample_checksum(const Dataset& dataset) {
  Checksum sum;
  for_some(dataset, 64, [&](const SampleKey& key) {
    sum.add(dataset.sample_bytes(), [&](std::span<uint8_t> sample) { dataset.get(key, sample); });
    sum.add(dataset.target_bytes(), [&](std::span<uint8_t> target) { dataset.get_target(key, target); });
  });
  return sum.text();
}

}  // namespace weft::data
