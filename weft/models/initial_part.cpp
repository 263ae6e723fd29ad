#include "weft/models/initial_part.h"

#include "weft/base/names.h"
#include "weft/graph/filled_part.h"

namespace weft::models {

float draw(RandomStream& stream, const Initializer& initializer) {
  const float scale = static_cast<float>(initializer.scale);
  if (initializer.kind == Initializer::Kind::normal) return stream.normal() * scale;
  return (2 * stream.uniform() - 1) * scale;
}

Tensor initialize_part(const ParameterSpec& parameter, uint64_t seed, const Sharding& sharding, int64_t coordinate) {
  const Initializer::Kind kind = parameter.initializer.kind;
  const bool is_drawn = kind == Initializer::Kind::uniform || kind == Initializer::Kind::normal;
  if (!is_drawn || !parameter.start.empty() || sharding.is_replicated())
    return part_of(initialize(parameter, seed), sharding, coordinate);
  RandomStream stream(mix(seed, hash_name(parameter.name)));
  const int words_per_value = kind == Initializer::Kind::normal ? 2 : 1;
  int64_t next = 0;
  return filled_part(sharding, coordinate, [&](float* values, int64_t first, int64_t count) {
    for (int64_t skipped = words_per_value * (first - next); skipped > 0; --skipped) stream.bits();
    for (int64_t i = 0; i < count; ++i) values[i] = draw(stream, parameter.initializer);
    next = first + count;
  });
}

}  // namespace weft::models
