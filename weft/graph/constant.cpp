#include "weft/graph/constant.h"

#include "weft/base/error.h"
#include "weft/base/rng.h"

namespace weft {

ConstantData::ConstantData(Tensor tensor) : tensor_(std::move(tensor)) {
  check(!tensor_.empty(), "a constant has data");
  hash_ = hash128({static_cast<const std::byte*>(tensor_.data()), static_cast<size_t>(tensor_.bytes())},
                  hash_name(to_string(tensor_.type())));
}

}  // namespace weft
