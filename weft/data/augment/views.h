// The views of an image that test-time augmentation shows to a network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::data {

/// An image moved by so many pixels, what comes in from beyond the border being reflected there, and then perhaps
/// mirrored left to right.
struct View {
  int64_t down = 0, right = 0;
  bool mirrored = false;
  double weight = 1;  // in the mean
};

/// "none", "flip", "multicrop"
std::vector<std::string> tta_names();
/// "none": the image; "flip": with its mirror image; "multicrop" (Jordan 2024, section 3.5): the same, for one half,
/// with those moved by a pixel up and to the left and down and to the right. Weights sum to 1.
std::vector<View> views_of(const std::string& tta);

}  // namespace weft::data
