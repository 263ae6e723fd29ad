#include "weft/step/states/state_holders.h"

#include "weft/graph/tensor_parts.h"

namespace weft::step {

std::vector<int> holders_of(const StateSharding& sharding, const Mesh& mesh) {
  return weft::holders_of(static_cast<const Sharding&>(sharding), mesh, sharding.on.empty() ? 0 : sharding.on.front());
}

}  // namespace weft::step
