// Elementary functions of one float, written so that the compiler's vectoriser turns loops over them into vector code:
// no calls, no branches. Included by loop headers inside an instruction set's namespace (multiversion.h).
// Errors are relative and of the size of a few units in the last place unless said.

WEFT_INLINE uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
WEFT_INLINE float from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// x = k ln 2 + r with an integer k, |r| <= ln 2 / 2. For x between -104 and 89.
struct ExpParts {
  uint32_t k;   // in two's complement
  float power;  // exp(r), by the polynomial of Cephes' expf
};
WEFT_INLINE ExpParts exp_parts_of(float x) {
  const float shifted = x * 1.44269504088896341f + 12582912.0f;  // 1.5 * 2^23: rounds to an integer in the low bits
  const float k = shifted - 12582912.0f;
  const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return {bits_of(shifted) - 0x4B400000u, p};
}

/// exp(x) = 2^k exp(r). Subnormal results and overflow included.
WEFT_INLINE float exp_of(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const ExpParts parts = exp_parts_of(x);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(parts.k) >> 1);
  return parts.power * from_bits((half + 127u) << 23) * from_bits((parts.k - half + 127u) << 23);
}

/// exp(x) of x <= 0, in fewer steps: 1.6e-38 for all below -87, any number for NaN.
WEFT_INLINE float exp_below_zero(float x) {
  const ExpParts parts = exp_parts_of(x < -87.0f ? -87.0f : x);
  return from_bits(bits_of(parts.power) + (parts.k << 23));
}

/// Natural logarithm, the polynomial of Cephes' logf; -inf at 0, NaN below.
WEFT_INLINE float log_of(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float normal = tiny ? x * 8388608.0f : x;
  const uint32_t bits = bits_of(normal);
  const uint32_t offset = bits - 0x3F3504F3u;  // so that the mantissa lies in [sqrt(1/2), sqrt(2))
  const float e = static_cast<float>(static_cast<int32_t>(offset) >> 23) - (tiny ? 23.0f : 0.0f);
  const float m = from_bits((offset & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float square = m * m;
  float result = p * m * square + e * -2.12194440e-4f - 0.5f * square;
  result = (m + result) + e * 0.693359375f;
  result = x > 3.40282347e38f ? x : result;
  result = x == 0.0f ? from_bits(0xFF800000u) : result;
  result = x < 0.0f ? from_bits(0x7FC00000u) : result;
  return x != x ? x : result;
}

/// Rational minimax approximation, odd, of degree 13 over 6 (as in Eigen's ptanh).
WEFT_INLINE float tanh_of(float x) {
  float c = x > 7.90531110763549805f ? 7.90531110763549805f : x;
  c = c < -7.90531110763549805f ? -7.90531110763549805f : c;
  const float s = c * c;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  const float magnitude = x < 0.0f ? -x : x;
  return magnitude < 0.0004f ? x : c * p / q;
}

WEFT_INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

/// Rational approximation, odd, of degree 13 over 8 (as in Eigen's erf); absolute error below 2e-7.
WEFT_INLINE float erf_of(float x) {
  float c = x > 4.0f ? 4.0f : x;
  c = c < -4.0f ? -4.0f : c;
  const float s = c * c;
  float p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * s - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  return c * p / q;
}
