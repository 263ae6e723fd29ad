#include "weft/data/augment/views.h"

namespace weft::data {

std::vector<std::string> tta_names() { return {"none", "flip", "multicrop"}; }

std::vector<View> views_of(const std::string& tta) {
  if (tta == "flip") return {{.weight = 0.5}, {.mirrored = true, .weight = 0.5}};
  if (tta != "multicrop") return {View{}};
  std::vector<View> views;
  for (const bool mirrored : {false, true}) {
    views.push_back({.mirrored = mirrored, .weight = 0.25});
    for (const int64_t pixel : {1, -1})
      views.push_back({.down = pixel, .right = pixel, .mirrored = mirrored, .weight = 0.125});
  }
  return views;
}

}  // namespace weft::data
