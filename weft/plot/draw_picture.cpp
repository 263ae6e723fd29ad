// SVG and PNG through cairo, which draws both by the same calls.
#include <cairo-svg.h>
#include <cairo.h>

#include <array>
#include <memory>
#include <set>

#include "weft/base/error.h"
#include "weft/plot/bounds.h"
#include "weft/plot/figure.h"

namespace weft::plot {

namespace {

// In points.
constexpr double kPanelWidth = 520, kPanelHeight = 340;
constexpr double kLeft = 62, kRight = 16, kTop = 34, kBottom = 44;
constexpr double kFontSize = 11, kLegendLine = 15;

struct Colour {
  double red, green, blue;
};
/// Distinct for the colour-blind too (Okabe and Ito 2008, without yellow).
constexpr std::array<Colour, 7> kColours{{{0.00, 0.45, 0.70},
                                          {0.84, 0.37, 0.00},
                                          {0.00, 0.62, 0.45},
                                          {0.80, 0.47, 0.65},
                                          {0.34, 0.71, 0.91},
                                          {0.90, 0.62, 0.00},
                                          {0.20, 0.20, 0.20}}};

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

cairo_status_t append(void* target, const unsigned char* data, unsigned int bytes) {
  static_cast<std::string*>(target)->append(reinterpret_cast<const char*>(data), bytes);
  return CAIRO_STATUS_SUCCESS;
}

void require(cairo_status_t status) {
  if (status != CAIRO_STATUS_SUCCESS)
    fail(ErrorKind::internal, "cairo cannot draw the figure: {}", cairo_status_to_string(status));
}

void text(cairo_t* context, const std::string& content, double x, double y, double anchor) {
  cairo_text_extents_t extents;
  cairo_text_extents(context, content.c_str(), &extents);
  cairo_move_to(context, x - anchor * extents.x_advance, y);
  cairo_show_text(context, content.c_str());
}

class PanelDrawing {
 public:
  PanelDrawing(cairo_t* context, const Panel& panel, double offset)
      : context_(context), panel_(panel), left_(offset + kLeft), width_(kPanelWidth - kLeft - kRight) {
    const Bounds bounds = bounds_of(panel);
    if (bounds.empty()) return;
    x_ = make_axis(bounds.left, bounds.right, 7);
    y_ = make_axis(bounds.bottom, bounds.top, 7);
  }

  void draw() const {
    draw_grid();
    cairo_save(context_);
    cairo_rectangle(context_, left_, kTop, width_, height_);
    cairo_clip(context_);
    for (const Series& series : panel_.series)
      if (series.faint) draw_series(series);
    for (const Series& series : panel_.series)
      if (!series.faint) draw_series(series);
    cairo_restore(context_);
    draw_legend();
  }

 private:
  double column(double value) const { return left_ + (value - x_.low) / (x_.high - x_.low) * width_; }
  double row(double value) const { return kTop + height_ - (value - y_.low) / (y_.high - y_.low) * height_; }

  void line(double x, double y, double to_x, double to_y) const {
    cairo_move_to(context_, x, y);
    cairo_line_to(context_, to_x, to_y);
    cairo_stroke(context_);
  }

  void draw_grid() const {
    cairo_set_line_width(context_, 0.6);
    for (const double mark : marks_of(x_)) {
      cairo_set_source_rgb(context_, 0.88, 0.88, 0.88);
      line(column(mark), kTop, column(mark), kTop + height_);
      cairo_set_source_rgb(context_, 0.25, 0.25, 0.25);
      text(context_, label_of(x_, mark), column(mark), kTop + height_ + 16, 0.5);
    }
    for (const double mark : marks_of(y_)) {
      cairo_set_source_rgb(context_, 0.88, 0.88, 0.88);
      line(left_, row(mark), left_ + width_, row(mark));
      cairo_set_source_rgb(context_, 0.25, 0.25, 0.25);
      text(context_, label_of(y_, mark), left_ - 6, row(mark) + 4, 1);
    }
    cairo_rectangle(context_, left_, kTop, width_, height_);
    cairo_stroke(context_);
    text(context_, panel_.x_label, left_ + width_ / 2, kTop + height_ + 34, 0.5);
    cairo_set_font_size(context_, kFontSize + 2);
    text(context_, panel_.title, left_ + width_ / 2, kTop - 12, 0.5);
    cairo_set_font_size(context_, kFontSize);
  }

  void set_style(const Series& series) const {
    const Colour& colour = kColours[static_cast<size_t>(series.group) % kColours.size()];
    cairo_set_source_rgba(context_, colour.red, colour.green, colour.blue, series.faint ? 0.25 : 1.0);
    cairo_set_line_width(context_, series.faint ? 1.0 : 1.6);
    const double dash[] = {5, 3};
    cairo_set_dash(context_, dash, series.dashed ? 2 : 0, 0);
  }

  void draw_series(const Series& series) const {
    set_style(series);
    bool drawing = false;
    for (size_t index = 0; index < series.x.size(); ++index) {
      if (!is_point(series, index)) {
        drawing = false;
        continue;
      }
      const double x = column(series.x[index]), y = row(series.y[index]);
      if (drawing)
        cairo_line_to(context_, x, y);
      else
        cairo_move_to(context_, x, y);
      drawing = true;
    }
    cairo_stroke(context_);
    cairo_set_dash(context_, nullptr, 0, 0);
    if (series.faint || series.x.size() > 60) return;
    for (size_t index = 0; index < series.x.size(); ++index) {
      if (!is_point(series, index)) continue;
      cairo_arc(context_, column(series.x[index]), row(series.y[index]), 2, 0, 6.2832);
      cairo_fill(context_);
    }
  }

  /// At the right end, in the half that fewer curves end in.
  void draw_legend() const {
    int entries = 0, high_ends = 0;
    for (const Series& series : panel_.series) {
      if (series.faint) continue;
      ++entries;
      size_t last = series.x.size();
      while (last > 0 && !is_point(series, last - 1)) --last;
      if (last > 0 && series.y[last - 1] > (y_.low + y_.high) / 2) ++high_ends;
    }
    double y = 2 * high_ends > entries ? kTop + height_ - 8 - kLegendLine * (entries - 1) : kTop + 14;
    for (const Series& series : panel_.series) {
      if (series.faint) continue;
      set_style(series);
      cairo_text_extents_t extents;
      cairo_text_extents(context_, series.name.c_str(), &extents);
      const double end = left_ + width_ - 8;
      line(end - 24, y - 4, end, y - 4);
      cairo_set_dash(context_, nullptr, 0, 0);
      cairo_set_source_rgb(context_, 0.1, 0.1, 0.1);
      text(context_, series.name, end - 30, y, 1);
      y += kLegendLine;
    }
  }

  cairo_t* context_;
  const Panel& panel_;
  double left_, width_, height_ = kPanelHeight - kTop - kBottom;
  Axis x_, y_;
};

double width_of(const Figure& figure) { return kPanelWidth * static_cast<double>(figure.panels.size()); }

void draw(cairo_surface_t* surface, const Figure& figure) {
  const Context context(cairo_create(surface), cairo_destroy);
  cairo_set_source_rgb(context.get(), 1, 1, 1);
  cairo_paint(context.get());
  cairo_select_font_face(context.get(), "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context.get(), kFontSize);
  for (size_t index = 0; index < figure.panels.size(); ++index)
    PanelDrawing(context.get(), figure.panels[index], kPanelWidth * static_cast<double>(index)).draw();
  require(cairo_status(context.get()));
}

}  // namespace

std::string draw_svg(const Figure& figure) {
  std::string content;
  const Surface surface(cairo_svg_surface_create_for_stream(append, &content, width_of(figure), kPanelHeight),
                        cairo_surface_destroy);
  draw(surface.get(), figure);
  cairo_surface_finish(surface.get());
  require(cairo_surface_status(surface.get()));
  return content;
}

std::string draw_png(const Figure& figure) {
  constexpr int kScale = 2;  // pixels per point
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width_of(figure)) * kScale,
                                                   static_cast<int>(kPanelHeight) * kScale),
                        cairo_surface_destroy);
  cairo_surface_set_device_scale(surface.get(), kScale, kScale);
  draw(surface.get(), figure);
  std::string content;
  require(cairo_surface_write_to_png_stream(surface.get(), append, &content));
  return content;
}

}  // namespace weft::plot
