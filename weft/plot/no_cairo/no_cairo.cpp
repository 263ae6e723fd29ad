// In place of draw_picture.cpp and draw_label.cpp where weft is built without cairo (WEFT_PLOT=OFF): charts are drawn
// in the terminal alone.
#include "weft/base/error.h"
#include "weft/plot/figure.h"
#include "weft/plot/label.h"

namespace weft::plot {

namespace {

[[noreturn]] void fail_without_cairo() {
  fail(ErrorKind::usage,
       "this weft was built without cairo and draws charts in the terminal only: leave the file's name away, or "
       "configure weft with -DWEFT_PLOT=ON");
}

}  // namespace

bool draws_pictures() { return false; }
std::vector<uint8_t> draw_label(const std::string&, int width, int height) {
  return std::vector<uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height), 255);
}
std::string draw_svg(const Figure&) { fail_without_cairo(); }
std::string draw_png(const Figure&) { fail_without_cairo(); }

}  // namespace weft::plot
