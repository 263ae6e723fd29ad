// A line of text as a small grey picture, to stand below a photo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::plot {

/// Black on white, row-major, `width` x `height` pixels, in the middle; what is too long ends in an ellipsis. All white
/// without cairo (draws_pictures()).
std::vector<uint8_t> draw_label(const std::string& text, int width, int height);

}  // namespace weft::plot
