// Loops of pooling over one plane; compiled per instruction set (multiversion.h). `position` counts pixels of the
// plane; a pixel holds `width` adjacent channels, which the vectors run along.

/// Calls visit(position) for the pixels of window (oy, ox) that lie inside the plane, in row-major order.
template <typename Visit>
WEFT_INLINE void for_window(const Window& w, int64_t oy, int64_t ox, Visit&& visit) {
  const int64_t top = oy * w.stride[0] - w.padding[0], left = ox * w.stride[1] - w.padding[1];
  const int64_t y_end = std::min(top + w.kernel[0], w.height), x_end = std::min(left + w.kernel[1], w.width);
  for (int64_t y = std::max<int64_t>(top, 0); y < y_end; ++y)
    for (int64_t x = std::max<int64_t>(left, 0); x < x_end; ++x) visit(y * w.width + x);
}

/// 1 / the pixels that an average counts: all of the window, or those inside the plane.
WEFT_INLINE float reciprocal_count(const Window& w, int64_t oy, int64_t ox) {
  if (w.count_padding) return 1.0f / static_cast<float>(w.kernel[0] * w.kernel[1]);
  int64_t inside = 0;
  for_window(w, oy, ox, [&](int64_t) { ++inside; });
  return 1.0f / static_cast<float>(std::max<int64_t>(inside, 1));
}

/// Calls body(output position, oy, ox) for every window.
template <typename Body>
WEFT_INLINE void for_each_output(const Window& w, Body&& body) {
  for (int64_t oy = 0; oy < w.out_height; ++oy)
    for (int64_t ox = 0; ox < w.out_width; ++ox) body(oy * w.out_width + ox, oy, ox);
}

void max_forward(const Window& w, const float* x, float* y) {
  for_each_output(w, [&](int64_t out, int64_t oy, int64_t ox) {
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V best = V{} - std::numeric_limits<float>::infinity();
      for_window(w, oy, ox, [&](int64_t position) {
        const V value = load<V>(x + position * w.channels + at);
        best = ((value > best) | (value != value)) ? value : best;  // NaN wins, so that it shows in the loss
      });
      store<V>(y + out * w.channels + at, best);
    });
  });
}

/// Where the gradient of a window with maximum `best` may go: to its maxima, or to a NaN, which is then the maximum.
template <typename V>
WEFT_INLINE auto is_best(V value, V best) {
  return (value == best) | (value != value);
}

/// `dx` starts as zeros. What is left of a window's gradient goes to the first such pixel.
void max_backward(const Window& w, const float* dy, const float* x, const float* y, float* dx) {
  for_each_output(w, [&](int64_t out, int64_t oy, int64_t ox) {
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V left = load<V>(dy + out * w.channels + at);
      const V best = load<V>(y + out * w.channels + at);
      for_window(w, oy, ox, [&](int64_t position) {
        const int64_t i = position * w.channels + at;
        const V value = load<V>(x + i);
        const auto hit = is_best<V>(value, best);
        store<V>(dx + i, load<V>(dx + i) + (hit ? left : zero<V>()));
        left = hit ? zero<V>() : left;
      });
    });
  });
}

/// The four pixels of a window of 2 x 2 and stride 2, none of which is in another window.
struct Quad {
  int64_t at[4];  // elements of the first channel
};
template <typename Body>
WEFT_INLINE void for_each_quad(const Window& w, Body&& body) {
  const int64_t row = w.width * w.channels;
  for (int64_t oy = 0; oy < w.out_height; ++oy)
    for (int64_t ox = 0; ox < w.out_width; ++ox) {
      const int64_t first = 2 * oy * row + 2 * ox * w.channels;
      body((oy * w.out_width + ox) * w.channels,
           Quad{{first, first + w.channels, first + row, first + row + w.channels}});
    }
}

void max_forward_quads(const Window& w, const float* x, float* y) {
  for_each_quad(w, [&](int64_t out, const Quad& quad) {
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V best = V{} - std::numeric_limits<float>::infinity();
      for (const int64_t pixel : quad.at) {
        prefetch_row(x + pixel + at, kLine);
        const V value = load<V>(x + pixel + at);
        best = ((value > best) | (value != value)) ? value : best;  // NaN wins, so that it shows in the loss
      }
      store<V>(y + out + at, best);
    });
  });
}

/// Writes all of `dx`, which need not be zeros before.
void max_backward_quads(const Window& w, const float* dy, const float* x, const float* y, float* dx) {
  for_each_quad(w, [&](int64_t out, const Quad& quad) {
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V left = load<V>(dy + out + at);
      const V best = load<V>(y + out + at);
      for (const int64_t pixel : quad.at) {
        prefetch_row(x + pixel + at, kLine);
        const V value = load<V>(x + pixel + at);
        const auto hit = is_best<V>(value, best);
        store<V>(dx + pixel + at, hit ? left : zero<V>());
        left = hit ? zero<V>() : left;
      }
    });
  });
  // An odd last column or row is in no window.
  const int64_t row = w.width * w.channels, covered = 2 * w.out_width * w.channels;
  for (int64_t line = 0; line < 2 * w.out_height && covered < row; ++line)
    std::memset(dx + line * row + covered, 0, static_cast<size_t>(row - covered) * sizeof(float));
  const int64_t lines = w.height - 2 * w.out_height;
  std::memset(dx + 2 * w.out_height * row, 0, static_cast<size_t>(lines * row) * sizeof(float));
}

void average_forward(const Window& w, const float* x, float* y) {
  for_each_output(w, [&](int64_t out, int64_t oy, int64_t ox) {
    const float factor = reciprocal_count(w, oy, ox);
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V sum{};
      for_window(w, oy, ox, [&](int64_t position) { sum += load<V>(x + position * w.channels + at); });
      store<V>(y + out * w.channels + at, sum * factor);
    });
  });
}

/// `dx` starts as zeros.
void average_backward(const Window& w, const float* dy, float* dx) {
  for_each_output(w, [&](int64_t out, int64_t oy, int64_t ox) {
    const float factor = reciprocal_count(w, oy, ox);
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      const V share = load<V>(dy + out * w.channels + at) * factor;
      for_window(w, oy, ox, [&](int64_t position) {
        const int64_t i = position * w.channels + at;
        store<V>(dx + i, load<V>(dx + i) + share);
      });
    });
  });
}

constexpr Loops loops{max_forward,        max_backward,    max_forward_quads,
                      max_backward_quads, average_forward, average_backward};
