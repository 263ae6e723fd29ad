// GELU and its derivative, which share nearly all of their arithmetic. Included by loop headers inside an instruction
// set's namespace (multiversion.h).

#include "weft/cpu/native/support/short_power.h"
#include "weft/cpu/native/support/vector_math.h"

struct Gelu {
  float value, slope;
};

/// x Phi(x) and Phi(x) + x phi(x). What a loop does not use of the two is not computed.
WEFT_INLINE Gelu gelu_of(float x) {
  const float cumulative = 0.5f * (1.0f + erf_of(x * 0.707106781186547524f));
  return {x * cumulative, cumulative + x * 0.398942280401432678f * exp_below_zero(-0.5f * x * x)};
}

WEFT_INLINE Gelu gelu_tanh_of(float x) {
  const float bend = tanh_of(0.797884560802865356f * (x + 0.044715f * x * x * x));
  const float inner_slope = 0.797884560802865356f * (1.0f + 3 * 0.044715f * x * x);
  return {0.5f * x * (1.0f + bend), 0.5f * (1.0f + bend) + 0.5f * x * (1.0f - bend * bend) * inner_slope};
}

template <typename V>
struct ShortGelu {
  V value, slope;
};

/// For results that bf16 will hold, of one float or a vector of them. With a = |x|, Phi(-a) = exp(-a^2 / 2) q(a), where
/// q is smooth: a polynomial of degree 8, whose relative error is below 2^-13 up to 5 and which exp outweighs beyond;
/// a minimax fit. No quotient, and one exp for both results. Relative error of gelu
/// below 2^-12 to x = -5, absolute error of both below 4e-5.
template <typename V>
WEFT_INLINE ShortGelu<V> short_gelu_of(V x) {
  using Wide = typename Bits<lanes_of<V>>::Wide;
  V a = __builtin_bit_cast(V, __builtin_bit_cast(Wide, x) & 0x7fffffffu);
  a = a > 13.0f ? V{} + 13.0f : a;  // exp(-13^2 / 2) is still a normal number
  const ShortPower<V> parts = short_power_of_two(a * a * -0.721347520444481704f);
  const V power = __builtin_bit_cast(V, __builtin_bit_cast(Wide, parts.mantissa) + (parts.k << 23));
  V q = a * 5.79044256147791e-06f - 0.00014531563670575168f;
  q = q * a + 0.0015831078876925209f;
  q = q * a - 0.00992157262581447f;
  q = q * a + 0.04025889512107848f;
  q = q * a - 0.11416842561174884f;
  q = q * a + 0.24129196653491014f;
  q = q * a - 0.3972645117105298f;
  q = q * a + 0.4999416325420506f;
  const V slope = power * (q - a * 0.398942280401432678f);  // at -a
  return {rectify(x) - power * (a * q), x > 0.0f ? 1.0f - slope : slope};
}
