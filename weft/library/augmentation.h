// What is done to the pixels of training images beyond crop, flip and rotation, as entries.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/data/augment/pixel_change.h"
#include "weft/library/key.h"

namespace weft::spec {
struct AugmentSpec;
}

namespace weft {

struct AugmentationEntry {
  std::string name;            // "erasing"
  std::string summary = {};    // a line
  std::vector<Key> keys = {};  // of [augment] that it reads, by their short names; by default it is off
  /// nullopt where the keys switch it off.
  std::function<std::optional<data::PixelChange>(const spec::AugmentSpec&)> make = {};
};

}  // namespace weft
