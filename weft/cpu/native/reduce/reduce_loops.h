// Loops of reductions; compiled per instruction set (multiversion.h). Floats are added up in vectors over short runs
// only and then in double; products, whose range a few floats may leave, are in double throughout. A NaN is the largest
// and the smallest of all.

template <Reduction reduction, typename V>
WEFT_INLINE V join(V a, V b) {
  if constexpr (reduction == Reduction::max) return ((b > a) | (b != b)) ? b : a;
  if constexpr (reduction == Reduction::min) return ((b < a) | (b != b)) ? b : a;
  return a + b;
}
template <Reduction reduction>
WEFT_INLINE void join_into(double& total, double value) {
  if constexpr (reduction == Reduction::product)
    total *= value;
  else
    total = join<reduction>(total, value);
}

/// All of x[0 .. count).
template <typename T, Reduction reduction>
void span(const T* x, int64_t count, double* total) {
  constexpr int64_t kRun = 256 * kLanes;  // 64 additions per accumulator
  constexpr float kStart = start_of(reduction);
  while (count > 0) {
    const int64_t run = std::min(count, kRun);
    FloatVector a = FloatVector{} + kStart, b = a, c = a, d = a;
    float rest = kStart;
    int64_t i = 0;
    for (; i + 4 * kLanes <= run; i += 4 * kLanes) {
      a = join<reduction>(a, load<FloatVector>(x + i));
      b = join<reduction>(b, load<FloatVector>(x + i + kLanes));
      c = join<reduction>(c, load<FloatVector>(x + i + 2 * kLanes));
      d = join<reduction>(d, load<FloatVector>(x + i + 3 * kLanes));
    }
    for (; i + kLanes <= run; i += kLanes) a = join<reduction>(a, load<FloatVector>(x + i));
    for (; i < run; ++i) rest = join<reduction>(rest, load<float>(x + i));
    float lanes[kLanes];
    store(lanes, join<reduction>(join<reduction>(a, b), join<reduction>(c, d)));
    for (const float lane : lanes) join_into<reduction>(*total, static_cast<double>(lane));
    join_into<reduction>(*total, static_cast<double>(rest));
    x += run;
    count -= run;
  }
}

template <typename T>
void product_span(const T* x, int64_t count, double* total) {
  double lanes[2 * kLanes];
  for (double& lane : lanes) lane = 1;
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes)
    for (int64_t lane = 0; lane < 2 * kLanes; ++lane) lanes[lane] *= static_cast<double>(load<float>(x + i + lane));
  for (; i < count; ++i) *total *= static_cast<double>(load<float>(x + i));
  for (const double lane : lanes) *total *= lane;
}

/// Column by column: x[row * stride + column] for all rows. Four rows at once, from their beginning to their end, as
/// memory likes it.
template <typename T, Reduction reduction>
void columns(const T* x, int64_t rows, int64_t stride, int64_t width, double* totals) {
  float partial[kTile];
  for (int64_t row = 0; row < rows;) {
    const bool is_first = row == 0, are_four = rows - row >= 4;
    const T* const from = x + row * stride;
    for_each_lane_group(width, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V value = load<V>(from + at);
      if (are_four)
        value =
            join<reduction, V>(join<reduction, V>(value, load<V>(from + stride + at)),
                               join<reduction, V>(load<V>(from + 2 * stride + at), load<V>(from + 3 * stride + at)));
      store<V>(partial + at, is_first ? value : join<reduction, V>(load<V>(partial + at), value));
    });
    row += are_four ? 4 : 1;
  }
  for (int64_t at = 0; at < width; ++at) join_into<reduction>(totals[at], static_cast<double>(partial[at]));
}

template <typename T>
void product_columns(const T* x, int64_t rows, int64_t stride, int64_t width, double* totals) {
  for (int64_t row = 0; row < rows; ++row, x += stride)
    for (int64_t column = 0; column < width; ++column) totals[column] *= static_cast<double>(load<float>(x + column));
}

template <typename T>
constexpr Loops<T> loops{
    {span<T, Reduction::sum>, span<T, Reduction::max>, span<T, Reduction::min>, product_span<T>},
    {columns<T, Reduction::sum>, columns<T, Reduction::max>, columns<T, Reduction::min>, product_columns<T>}};
