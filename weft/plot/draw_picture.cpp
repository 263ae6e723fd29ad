// SVG and PNG through cairo, which draws both by the same calls.
#include <cairo-svg.h>
#include <cairo.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "weft/base/error.h"
#include "weft/plot/cairo_text.h"
#include "weft/plot/figure.h"
#include "weft/plot/view.h"

namespace weft::plot {

namespace {

// In points.
constexpr double kPanelWidth = 520, kPanelHeight = 340;
constexpr double kLeft = 62, kRight = 16, kTop = 34, kBottom = 44;
constexpr double kFontSize = 11, kLegendLine = 16, kTitleHeight = 26, kLegendMargin = 10;
constexpr double kSample = 26, kSampleGap = 7, kEntryGap = 20;  // of a legend's entry
constexpr double kArrow = 7;                                    // of a point beyond the axis

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

/// Further groups take hues that are far from the last ones: steps of the golden angle.
Colour colour_of_group(int group) {
  if (group < static_cast<int>(kColours.size())) return kColours[static_cast<size_t>(group)];
  const double hue = std::fmod(0.618034 * group, 1.0) * 6;
  const auto channel = [&](double shift) {
    const double at = std::fmod(hue + shift, 6.0);
    return 0.15 + 0.6 * std::clamp(std::abs(at - 3) - 1, 0.0, 1.0);
  };
  return {channel(0), channel(4), channel(2)};
}

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
  cairo_move_to(context, x - anchor * width_of_text(context, content), y);
  cairo_show_text(context, content.c_str());
}

void set_up(cairo_t* context) {
  cairo_select_font_face(context, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context, kFontSize);
}

void set_style(cairo_t* context, const Series& series) {
  const Colour colour = colour_of_group(series.group);
  cairo_set_source_rgba(context, colour.red, colour.green, colour.blue, series.faint ? 0.25 : 1.0);
  cairo_set_line_width(context, series.faint ? 1.0 : 1.6);
  const double dash[] = {5, 3}, dots[] = {1.5, 2.5};
  cairo_set_dash(context, series.line == Line::dotted ? dots : dash, series.line == Line::solid ? 0 : 2, 0);
}

class PanelDrawing {
 public:
  PanelDrawing(cairo_t* context, const Panel& panel, double left, double top)
      : context_(context), panel_(panel), left_(left + kLeft), top_(top + kTop), view_(view_of(panel, 7, 7)) {}

  void draw() const {
    draw_grid();
    cairo_save(context_);
    cairo_rectangle(context_, left_, top_, width_, height_);
    cairo_clip(context_);
    for (const bool faint : {true, false})
      for (const Series& series : panel_.series)
        if (series.faint == faint) draw_series(series);
    for (const Series& series : panel_.series) draw_arrows(series);
    cairo_restore(context_);
    for (const Series& series : panel_.series) draw_points(series);
    if (view_.above) draw_beyond("up to ", *view_.above, top_ + kArrow + 10);
    if (view_.below) draw_beyond("down to ", *view_.below, top_ + height_ - kArrow - 4);
  }

 private:
  double column(double value) const { return left_ + (value - view_.x.low) / (view_.x.high - view_.x.low) * width_; }
  /// Far points stay near enough for cairo's numbers.
  double row(double value) const {
    const double share = (value - view_.y.low) / (view_.y.high - view_.y.low);
    return top_ + height_ - std::clamp(share, -20.0, 20.0) * height_;
  }

  void line(double x, double y, double to_x, double to_y) const {
    cairo_move_to(context_, x, y);
    cairo_line_to(context_, to_x, to_y);
    cairo_stroke(context_);
  }

  void draw_grid() const {
    cairo_set_line_width(context_, 0.6);
    for (const double mark : marks_of(view_.x)) {
      cairo_set_source_rgb(context_, 0.88, 0.88, 0.88);
      line(column(mark), top_, column(mark), top_ + height_);
      cairo_set_source_rgb(context_, 0.25, 0.25, 0.25);
      text(context_, label_of(view_.x, mark), column(mark), top_ + height_ + 16, 0.5);
    }
    for (const double mark : marks_of(view_.y)) {
      cairo_set_source_rgb(context_, 0.88, 0.88, 0.88);
      line(left_, row(mark), left_ + width_, row(mark));
      cairo_set_source_rgb(context_, 0.25, 0.25, 0.25);
      text(context_, y_label(panel_, view_.y, mark), left_ - 6, row(mark) + 4, 1);
    }
    cairo_rectangle(context_, left_, top_, width_, height_);
    cairo_stroke(context_);
    text(context_, panel_.x_label, left_ + width_ / 2, top_ + height_ + 34, 0.5);
    cairo_set_font_size(context_, kFontSize + 2);
    text(context_, panel_.title, left_ + width_ / 2, top_ - 12, 0.5);
    cairo_set_font_size(context_, kFontSize);
  }

  void draw_series(const Series& series) const {
    if (series.line == Line::none) return;
    set_style(context_, series);
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
  }

  /// Whole at the edge too.
  void draw_points(const Series& series) const {
    const bool has_line = series.line != Line::none;
    if (has_line && (series.faint || series.x.size() > 60)) return;
    set_style(context_, series);
    for (size_t index = 0; index < series.x.size(); ++index) {
      if (!is_point(series, index) || series.y[index] > view_.y.high || series.y[index] < view_.y.low) continue;
      cairo_arc(context_, column(series.x[index]), row(series.y[index]), has_line ? 2 : 3, 0, 6.2832);
      cairo_fill(context_);
    }
    cairo_set_dash(context_, nullptr, 0, 0);
  }

  /// At the edge, for points beyond it; one where several would lie on each other.
  void draw_arrows(const Series& series) const {
    const Colour colour = colour_of_group(series.group);
    cairo_set_source_rgb(context_, colour.red, colour.green, colour.blue);
    for (const bool above : {true, false}) {
      double last = -kArrow;
      for (size_t index = 0; index < series.x.size(); ++index) {
        if (!is_point(series, index)) continue;
        if (above ? series.y[index] <= view_.y.high : series.y[index] >= view_.y.low) continue;
        const double x = column(series.x[index]);
        if (std::abs(x - last) < kArrow) continue;
        last = x;
        const double edge = above ? top_ : top_ + height_, inside = above ? kArrow : -kArrow;
        cairo_move_to(context_, x, edge);
        cairo_line_to(context_, x - kArrow / 2, edge + inside);
        cairo_line_to(context_, x + kArrow / 2, edge + inside);
        cairo_close_path(context_);
        cairo_fill(context_);
      }
    }
  }

  /// Says beside the arrow of the furthest point how far it is.
  void draw_beyond(const std::string& words, double value, double y) const {
    const std::string content = words + value_label(panel_, value);
    double x = left_;
    for (const Series& series : panel_.series)
      for (size_t index = 0; index < series.x.size(); ++index)
        if (is_point(series, index) && series.y[index] == value) x = column(series.x[index]);
    const double width = width_of_text(context_, content);
    x = x + kArrow + width > left_ + width_ ? x - kArrow - width : x + kArrow;
    cairo_set_source_rgba(context_, 1, 1, 1, 0.8);
    cairo_rectangle(context_, x - 2, y - 10, width + 4, 13);
    cairo_fill(context_);
    cairo_set_source_rgb(context_, 0.1, 0.1, 0.1);
    text(context_, content, x, y, 0);
  }

  cairo_t* context_;
  const Panel& panel_;
  double left_, top_, width_ = kPanelWidth - kLeft - kRight, height_ = kPanelHeight - kTop - kBottom;
  View view_;
};

/// Below the panels: entries in as many columns as the longest name leaves room for, but at least one per panel.
class Legend {
 public:
  Legend(cairo_t* context, const Figure& figure, double width) : entries_(legend_of(figure.panels)) {
    set_up(context);
    const double most = width - kLeft - kRight;
    const double most_of_one = kPanelWidth - kLeft - kRight - kSample - kSampleGap - kEntryGap;
    for (const Series* entry : entries_) {
      names_.push_back(fitted_text(context, entry->name, most_of_one));
      column_ = std::max(column_, kSample + kSampleGap + width_of_text(context, names_.back()) + kEntryGap);
    }
    const int columns = std::max(1, static_cast<int>((most + kEntryGap) / column_));
    rows_ = (static_cast<int>(entries_.size()) + columns - 1) / columns;
  }

  double height() const { return rows_ * kLegendLine + kLegendMargin; }

  void draw(cairo_t* context, double top) const {
    for (size_t index = 0; index < entries_.size(); ++index) {
      const double x = kLeft + column_ * (static_cast<int>(index) / rows_);
      const double y = top + kLegendLine * (static_cast<int>(index) % rows_ + 0.5);
      set_style(context, *entries_[index]);
      if (entries_[index]->line == Line::none) {
        cairo_arc(context, x + kSample / 2, y, 3, 0, 6.2832);
        cairo_fill(context);
      } else {
        cairo_move_to(context, x, y);
        cairo_line_to(context, x + kSample, y);
        cairo_stroke(context);
      }
      cairo_set_dash(context, nullptr, 0, 0);
      cairo_set_source_rgb(context, 0.1, 0.1, 0.1);
      text(context, names_[index], x + kSample + kSampleGap, y + 4, 0);
    }
  }

 private:
  std::vector<const Series*> entries_;
  std::vector<std::string> names_;
  double column_ = 1;
  int rows_ = 0;
};

/// A figure with the size that its legend gives it.
class FigureDrawing {
 public:
  explicit FigureDrawing(const Figure& figure)
      : figure_(figure),
        measured_(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1), cairo_surface_destroy),
        context_(cairo_create(measured_.get()), cairo_destroy),
        width_(kPanelWidth * std::max(1.0, static_cast<double>(figure.panels.size()))),
        legend_(context_.get(), figure, width_) {}

  double width() const { return width_; }
  double height() const { return std::ceil(title_height() + kPanelHeight + legend_.height()); }

  void draw(cairo_surface_t* surface) const {
    const Context context(cairo_create(surface), cairo_destroy);
    cairo_set_source_rgb(context.get(), 1, 1, 1);
    cairo_paint(context.get());
    set_up(context.get());
    if (!figure_.title.empty()) {
      cairo_set_source_rgb(context.get(), 0.1, 0.1, 0.1);
      cairo_set_font_size(context.get(), kFontSize + 4);
      text(context.get(), fitted_text(context.get(), figure_.title, width_ - kLeft - kRight), width_ / 2, 20, 0.5);
      cairo_set_font_size(context.get(), kFontSize);
    }
    for (size_t index = 0; index < figure_.panels.size(); ++index)
      PanelDrawing(context.get(), figure_.panels[index], kPanelWidth * static_cast<double>(index), title_height())
          .draw();
    legend_.draw(context.get(), title_height() + kPanelHeight);
    require(cairo_status(context.get()));
  }

 private:
  double title_height() const { return figure_.title.empty() ? 0 : kTitleHeight; }

  const Figure& figure_;
  Surface measured_;
  Context context_;
  double width_;
  Legend legend_;
};

}  // namespace

bool draws_pictures() { return true; }

std::string draw_svg(const Figure& figure) {
  const FigureDrawing drawing(figure);
  std::string content;
  const Surface surface(cairo_svg_surface_create_for_stream(append, &content, drawing.width(), drawing.height()),
                        cairo_surface_destroy);
  drawing.draw(surface.get());
  cairo_surface_finish(surface.get());
  require(cairo_surface_status(surface.get()));
  return content;
}

std::string draw_png(const Figure& figure) {
  constexpr int kScale = 2;  // pixels per point
  const FigureDrawing drawing(figure);
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(drawing.width()) * kScale,
                                                   static_cast<int>(drawing.height()) * kScale),
                        cairo_surface_destroy);
  cairo_surface_set_device_scale(surface.get(), kScale, kScale);
  drawing.draw(surface.get());
  std::string content;
  require(cairo_surface_write_to_png_stream(surface.get(), append, &content));
  return content;
}

}  // namespace weft::plot
