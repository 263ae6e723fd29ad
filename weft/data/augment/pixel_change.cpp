#include "weft/data/augment/pixel_change.h"

namespace weft::data {

RandomStream stream_of(std::string_view kind, const AugmentedSample& sample) {
  const uint64_t key = mix(mix(sample.seed, hash_name(kind)), static_cast<uint64_t>(sample.epoch));
  return RandomStream(key, static_cast<uint64_t>(sample.index));
}

}  // namespace weft::data
