// Loops of pooling over one plane; compiled per instruction set (multiversion.h). A pixel of the plane holds `channels`
// adjacent numbers, which the vectors run along. Each loop copies its window: a store through a pointer might change
// what is read through a reference.

/// Calls visit(y, x) for the pixels of window (oy, ox) that lie inside the plane, in row-major order.
template <typename Visit>
WEFT_INLINE void for_window(const Window& w, int64_t oy, int64_t ox, Visit&& visit) {
  const int64_t top = oy * w.stride[0] - w.padding[0], left = ox * w.stride[1] - w.padding[1];
  const bool is_inside = top >= 0 && left >= 0 && top + w.kernel[0] <= w.height && left + w.kernel[1] <= w.width;
  if (is_inside && w.kernel[0] == 3 && w.kernel[1] == 3) {  // usual enough to be unrolled
    for (int64_t y = top; y < top + 3; ++y)
      for (int64_t x = left; x < left + 3; ++x) visit(y, x);
    return;
  }
  const int64_t y_end = std::min(top + w.kernel[0], w.height), x_end = std::min(left + w.kernel[1], w.width);
  for (int64_t y = std::max<int64_t>(top, 0); y < y_end; ++y)
    for (int64_t x = std::max<int64_t>(left, 0); x < x_end; ++x) visit(y, x);
}

/// 1 / the pixels that an average counts: all of the window, or those inside the plane.
WEFT_INLINE float reciprocal_count(const Window& w, int64_t oy, int64_t ox) {
  if (w.count_padding) return 1.0f / static_cast<float>(w.kernel[0] * w.kernel[1]);
  int64_t inside = 0;
  for_window(w, oy, ox, [&](int64_t, int64_t) { ++inside; });
  return 1.0f / static_cast<float>(std::max<int64_t>(inside, 1));
}

/// Calls body(output position, oy, ox) for every window.
template <typename Body>
WEFT_INLINE void for_each_output(const Window& w, Body&& body) {
  for (int64_t oy = 0; oy < w.out_height; ++oy)
    for (int64_t ox = 0; ox < w.out_width; ++ox) body(oy * w.out_width + ox, oy, ox);
}

template <typename T>
void max_forward(const Window& window, const T* x, T* y) {
  const Window w = window;
  for_each_output(w, [&](int64_t out, int64_t oy, int64_t ox) {
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V best = V{} - std::numeric_limits<float>::infinity();
      for_window(w, oy, ox, [&](int64_t py, int64_t px) {
        const V value = load<V>(x + (py * w.width + px) * w.channels + at);
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

/// Gradients of the input rows under a row of windows, added up in f32 and written once, when no later window reaches
/// them. `rows` holds as many rows as a window is high.
template <typename T>
class RowSums {
 public:
  WEFT_INLINE RowSums(const Window& w, T* dx, float* rows)
      : dx_(dx), rows_(rows), size_(w.width * w.channels), count_(std::min(w.kernel[0], w.height)) {
    clear(0);
  }
  WEFT_INLINE float* row(int64_t y) const { return rows_ + (y - first_) * size_; }
  /// Writes the rows up to `end`, without it, and makes room for as many behind them.
  WEFT_INLINE void finish(int64_t end) {
    const int64_t summed = std::min(end - first_, count_);
    for_each_lane_group(summed * size_, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      store<V>(dx_ + first_ * size_ + at, load<V>(rows_ + at));
    });
    const int64_t between = end - first_ - summed;  // rows that no window reaches
    std::memset(dx_ + (first_ + summed) * size_, 0, static_cast<size_t>(between * size_) * sizeof(T));
    const int64_t kept = count_ - summed;
    std::memmove(rows_, rows_ + summed * size_, static_cast<size_t>(kept * size_) * sizeof(float));
    clear(kept);
    first_ = end;
  }

 private:
  WEFT_INLINE void clear(int64_t begin) const {
    std::memset(rows_ + begin * size_, 0, static_cast<size_t>((count_ - begin) * size_) * sizeof(float));
  }
  T* const dx_;
  float* const rows_;
  const int64_t size_, count_;
  int64_t first_ = 0;  // row of the plane that lies first in `rows`
};

/// Calls body(output position, oy, ox, sums) for every window and lets `sums` write what no later window reaches.
template <typename T, typename Body>
WEFT_INLINE void add_up_windows(const Window& w, T* dx, float* rows, Body&& body) {
  RowSums<T> sums(w, dx, rows);
  for (int64_t oy = 0; oy < w.out_height; ++oy) {
    sums.finish(std::clamp<int64_t>(oy * w.stride[0] - w.padding[0], 0, w.height));
    for (int64_t ox = 0; ox < w.out_width; ++ox) body(oy * w.out_width + ox, oy, ox, sums);
  }
  sums.finish(w.height);
}

/// What is left of a window's gradient goes to the first such pixel.
template <typename T>
void max_backward(const Window& window, const T* dy, const T* x, const T* y, T* dx, float* rows) {
  const Window w = window;
  add_up_windows(w, dx, rows, [&](int64_t out, int64_t oy, int64_t ox, const RowSums<T>& sums) {
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V left = load<V>(dy + out * w.channels + at);
      const V best = load<V>(y + out * w.channels + at);
      for_window(w, oy, ox, [&](int64_t py, int64_t px) {
        const V value = load<V>(x + (py * w.width + px) * w.channels + at);
        const auto hit = is_best<V>(value, best);
        float* const sum = sums.row(py) + px * w.channels + at;
        store<V>(sum, load<V>(sum) + (hit ? left : zero<V>()));
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

template <typename T>
void max_forward_quads(const Window& window, const T* x, T* y) {
  const Window w = window;
  for_each_quad(w, [&](int64_t out, const Quad& quad) {
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V best = V{} - std::numeric_limits<float>::infinity();
      for (const int64_t pixel : quad.at) {
        prefetch_row(x + pixel + at, 1);
        const V value = load<V>(x + pixel + at);
        best = ((value > best) | (value != value)) ? value : best;  // NaN wins, so that it shows in the loss
      }
      store<V>(y + out + at, best);
    });
  });
}

template <typename T>
void max_backward_quads(const Window& window, const T* dy, const T* x, const T* y, T* dx) {
  const Window w = window;
  for_each_quad(w, [&](int64_t out, const Quad& quad) {
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V left = load<V>(dy + out + at);
      const V best = load<V>(y + out + at);
      for (const int64_t pixel : quad.at) {
        prefetch_row(x + pixel + at, 1);
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
    std::memset(dx + line * row + covered, 0, static_cast<size_t>(row - covered) * sizeof(T));
  const int64_t lines = w.height - 2 * w.out_height;
  std::memset(dx + 2 * w.out_height * row, 0, static_cast<size_t>(lines * row) * sizeof(T));
}

template <typename T>
void average_forward(const Window& window, const T* x, T* y) {
  const Window w = window;
  for_each_output(w, [&](int64_t out, int64_t oy, int64_t ox) {
    const float factor = reciprocal_count(w, oy, ox);
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V sum{};
      for_window(w, oy, ox, [&](int64_t py, int64_t px) { sum += load<V>(x + (py * w.width + px) * w.channels + at); });
      store<V>(y + out * w.channels + at, sum * factor);
    });
  });
}

template <typename T>
void average_backward(const Window& window, const T* dy, T* dx, float* rows) {
  const Window w = window;
  add_up_windows(w, dx, rows, [&](int64_t out, int64_t oy, int64_t ox, const RowSums<T>& sums) {
    const float factor = reciprocal_count(w, oy, ox);
    for_each_lane_group(w.channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      const V share = load<V>(dy + out * w.channels + at) * factor;
      for_window(w, oy, ox, [&](int64_t py, int64_t px) {
        float* const sum = sums.row(py) + px * w.channels + at;
        store<V>(sum, load<V>(sum) + share);
      });
    });
  });
}

template <typename T>
constexpr Loops<T> loops{max_forward<T>, max_forward_quads<T>, average_forward<T>};
template <typename T>
constexpr GradientLoops<T> gradient_loops{max_backward<T>, max_backward_quads<T>, average_backward<T>};
