// Loops of batch_norm_backward over one chunk of rows; compiled per instruction set (multiversion.h).

/// The output's gradient where the activation, whose output is y, lets it pass: a NaN does.
template <Activation activation, typename V>
WEFT_INLINE V passed(V gradient, V y) {
  const V low = zero<V>(), high = low + kSix;
  if constexpr (activation == Activation::relu6) return ((y <= low) | (y >= high)) ? low : gradient;
  return y <= low ? low : gradient;
}

template <Mask mask, typename V, typename T>
WEFT_INLINE V masked(V gradient, V x, V mean, V factor, V shift, const T* output) {
  constexpr bool is_relu6 = mask == Mask::relu6_of_input || mask == Mask::relu6_of_output;
  constexpr Activation activation = is_relu6 ? Activation::relu6 : Activation::relu;
  if constexpr (reads_output(mask)) return passed<activation, V>(gradient, load<V>(output));
  if constexpr (mask != Mask::none) return passed<activation, V>(gradient, (x - mean) * factor + shift);
  return gradient;
}

template <Mask mask, typename T>
WEFT_INLINE void prefetch_operands(const BackwardChunk<T>& c, int64_t i) {
  prefetch_row(c.x + i, c.stride);
  prefetch_row(c.gradient + i, c.stride);
  if constexpr (reads_output(mask)) prefetch_row(c.output + i, c.stride);
}

/// sum(g) and sum(g * (x - mean)) of the rows; stores g where the residual's gradient is wanted.
template <Mask mask, bool stores, typename V, typename T>
WEFT_INLINE void sum_at(const BackwardChunk<T>& c, int64_t i, V mean, V factor, V shift, V& sum, V& product) {
  prefetch_operands<mask>(c, i);
  const V x = load<V>(c.x + i);
  const V g = masked<mask, V>(load<V>(c.gradient + i), x, mean, factor, shift, c.output + i);
  if constexpr (stores) store<V>(c.masked + i, g);
  sum += g;
  product += g * (x - mean);
}

template <typename T, Mask mask, bool stores>
void sum_chunk(const BackwardChunk<T>& chunk) {
  const BackwardChunk<T> c = chunk;  // which no store can change
  if (c.width == 1 && c.stride == 1) {
    const FloatVector mean = FloatVector{} + *c.mean, factor = FloatVector{} + *c.factor,
                      shift = FloatVector{} + *c.shift;
    FloatVector s0{}, s1{}, p0{}, p1{};
    float s = 0, p = 0;
    int64_t r = 0;
    for (; r + 2 * kLanes <= c.rows; r += 2 * kLanes) {
      sum_at<mask, stores, FloatVector>(c, r, mean, factor, shift, s0, p0);
      sum_at<mask, stores, FloatVector>(c, r + kLanes, mean, factor, shift, s1, p1);
    }
    for (; r < c.rows; ++r) sum_at<mask, stores, float>(c, r, *c.mean, *c.factor, *c.shift, s, p);
    *c.sums += sum_lanes<FloatVector>(s0 + s1) + static_cast<double>(s);
    *c.products += sum_lanes<FloatVector>(p0 + p1) + static_cast<double>(p);
    return;
  }
  for_each_lane_group(c.width, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    const V mean = load<V>(c.mean + at), factor = load<V>(c.factor + at), shift = load<V>(c.shift + at);
    V s0{}, s1{}, p0{}, p1{};
    int64_t r = 0;
    for (; r + 2 <= c.rows; r += 2) {
      sum_at<mask, stores, V>(c, r * c.stride + at, mean, factor, shift, s0, p0);
      sum_at<mask, stores, V>(c, (r + 1) * c.stride + at, mean, factor, shift, s1, p1);
    }
    for (; r < c.rows; ++r) sum_at<mask, stores, V>(c, r * c.stride + at, mean, factor, shift, s0, p0);
    float sums[lanes_of<V>], products[lanes_of<V>];
    store<V>(sums, s0 + s1);
    store<V>(products, p0 + p1);
    for (int64_t l = 0; l < lanes_of<V>; ++l) {
      c.sums[at + l] += static_cast<double>(sums[l]);
      c.products[at + l] += static_cast<double>(products[l]);
    }
  });
}

/// dx = factor * (g - bias - (x - mean) * slope)
template <Mask mask, typename V, typename T>
WEFT_INLINE void apply_at(const BackwardChunk<T>& c, int64_t i, V mean, V factor, V shift, V bias, V slope) {
  prefetch_operands<mask>(c, i);
  const V x = load<V>(c.x + i);
  const V g = masked<mask, V>(load<V>(c.gradient + i), x, mean, factor, shift, c.output + i);
  store<V>(c.input_gradient + i, factor * (g - bias - (x - mean) * slope));
}

template <typename T, Mask mask>
void apply_chunk(const BackwardChunk<T>& chunk) {
  const BackwardChunk<T> c = chunk;
  if (c.width == 1 && c.stride == 1) {
    const FloatVector mean = FloatVector{} + *c.mean, factor = FloatVector{} + *c.factor,
                      shift = FloatVector{} + *c.shift, bias = FloatVector{} + *c.bias,
                      slope = FloatVector{} + *c.slope;
    int64_t r = 0;
    for (; r + kLanes <= c.rows; r += kLanes) apply_at<mask, FloatVector>(c, r, mean, factor, shift, bias, slope);
    for (; r < c.rows; ++r) apply_at<mask, float>(c, r, *c.mean, *c.factor, *c.shift, *c.bias, *c.slope);
    return;
  }
  for_each_lane_group(c.width, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    const V mean = load<V>(c.mean + at), factor = load<V>(c.factor + at), shift = load<V>(c.shift + at),
            bias = load<V>(c.bias + at), slope = load<V>(c.slope + at);
    for (int64_t r = 0; r < c.rows; ++r) apply_at<mask, V>(c, r * c.stride + at, mean, factor, shift, bias, slope);
  });
}

template <typename T, Mask mask>
constexpr MaskedLoops<T> loops_of{{sum_chunk<T, mask, false>, sum_chunk<T, mask, true>}, apply_chunk<T, mask>};

template <typename T>
constexpr Loops<T> loops{{loops_of<T, Mask::none>, loops_of<T, Mask::relu_of_input>, loops_of<T, Mask::relu_of_output>,
                          loops_of<T, Mask::relu6_of_input>, loops_of<T, Mask::relu6_of_output>}};
