// Powers for results that bf16 will hold, of one float or a vector of them. Included by loop headers inside an
// instruction set's namespace (multiversion.h).

/// 2^t = 2^k mantissa with an integer k: a minimax polynomial of degree 3, relative error below 2^-13.7.
template <typename V>
struct ShortPower {
  V mantissa;
  typename Bits<lanes_of<V>>::Wide k;  // in the low bits; the upper ones are arbitrary
};

template <typename V>
WEFT_INLINE ShortPower<V> short_power_of_two(V t) {
  const V shifted = t + 12582912.0f;  // 1.5 * 2^23: rounds to an integer in the low bits
  const V r = t - (shifted - 12582912.0f);
  V p = r * 0.05517166721771008f + 0.2426111220523291f;
  p = p * r + 0.6932609858003186f;
  p = p * r + 0.9999280735567426f;
  return {p, __builtin_bit_cast(typename Bits<lanes_of<V>>::Wide, shifted)};
}

/// exp(x) of x <= 0; 0 for all below -87.7, NaN for NaN.
template <typename V>
WEFT_INLINE V short_exp_below_zero(V x) {
  V t = x * 1.44269504088896341f;
  t = t < -127.0f ? V{} - 127.0f : t;
  const ShortPower<V> power = short_power_of_two(t);
  return power.mantissa * __builtin_bit_cast(V, (power.k + 127u) << 23);
}
