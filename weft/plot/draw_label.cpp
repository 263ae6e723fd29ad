#include <cairo.h>

#include <memory>

#include "weft/base/error.h"
#include "weft/plot/cairo_text.h"
#include "weft/plot/label.h"

namespace weft::plot {

std::vector<uint8_t> draw_label(const std::string& text, int width, int height) {
  const std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface(
      cairo_image_surface_create(CAIRO_FORMAT_A8, width, height), cairo_surface_destroy);
  {
    const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> context(cairo_create(surface.get()), cairo_destroy);
    cairo_select_font_face(context.get(), "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(context.get(), 0.75 * height);
    const std::string content = fitted_text(context.get(), text, width);
    cairo_move_to(context.get(), (width - width_of_text(context.get(), content)) / 2, 0.78 * height);
    cairo_show_text(context.get(), content.c_str());
    if (cairo_status(context.get()) != CAIRO_STATUS_SUCCESS)
      fail(ErrorKind::internal, "cairo cannot write '{}': {}", text,
           cairo_status_to_string(cairo_status(context.get())));
  }
  cairo_surface_flush(surface.get());
  const unsigned char* ink = cairo_image_surface_get_data(surface.get());
  const int stride = cairo_image_surface_get_stride(surface.get());
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) pixels.push_back(static_cast<uint8_t>(255 - ink[y * stride + x]));
  return pixels;
}

}  // namespace weft::plot
