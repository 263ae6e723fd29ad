#include "weft/cpu/native/integer/depthwise_vnni.h"

#if defined(__x86_64__)

#include "weft/cpu/native/integer/vnni_end.h"

namespace weft::native {

namespace {

WEFT_VNNI_TARGET inline const uint8_t* column_of(const DepthwiseTile& t, int64_t row, int64_t column) {
  return column >= 0 && column < t.width ? t.rows[row] + column * t.row_steps[row] : t.outside;
}

/// Four rows of one column, as groups of four bytes.
WEFT_VNNI_TARGET inline void spread_column(const DepthwiseTile& t, int64_t group, int64_t column, __mmask64 channels,
                                           uint8_t* to) {
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(t.flip));
  __m512i rows[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    rows[i] =
        _mm512_xor_si512(_mm512_maskz_loadu_epi8(channels, column_of(t, group * kDepthwiseRows + i, column)), flip);
  const __m512i low01 = _mm512_unpacklo_epi8(rows[0], rows[1]), high01 = _mm512_unpackhi_epi8(rows[0], rows[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(rows[2], rows[3]), high23 = _mm512_unpackhi_epi8(rows[2], rows[3]);
  _mm512_storeu_si512(to, _mm512_unpacklo_epi16(low01, low23));
  _mm512_storeu_si512(to + 64, _mm512_unpackhi_epi16(low01, low23));
  _mm512_storeu_si512(to + 128, _mm512_unpacklo_epi16(high01, high23));
  _mm512_storeu_si512(to + 192, _mm512_unpackhi_epi16(high01, high23));
}

WEFT_VNNI_TARGET inline void store_result(const DepthwiseTile& t, const VnniEnd& end, const __m512i (&sums)[4],
                                          int64_t result) {
  __m512i steps[4];
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) steps[n] = whole_steps(sums[n], t.factors + n * 16);
  _mm512_mask_storeu_epi8(t.to + result * t.to_step, end.bytes, pack_steps(steps, end));
}

/// Kernels of three columns and at most four rows: all weights stay in registers.
WEFT_VNNI_TARGET void multiply_three(const DepthwiseTile& t, const VnniEnd& end) {
  __m512i weights[3][4], added[4];
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {
    added[n] = _mm512_loadu_si512(t.added + n * 16);
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) weights[j][n] = _mm512_loadu_si512(t.weights + j * kDepthwiseGroup + n * 64);
  }
  for (int64_t result = 0; result < t.results; ++result) {
    const uint8_t* const column = t.columns + result * t.stride * kDepthwiseGroup;
    __m512i sums[4];
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) {
      sums[n] = added[n];
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j)
        sums[n] = _mm512_dpbusd_epi32(sums[n], _mm512_loadu_si512(column + j * t.dilation * kDepthwiseGroup + n * 64),
                                      weights[j][n]);
    }
    store_result(t, end, sums, result);
  }
}

WEFT_VNNI_TARGET void multiply_any(const DepthwiseTile& t, const VnniEnd& end) {
  const int64_t column_bytes = t.row_groups * kDepthwiseGroup;
  for (int64_t result = 0; result < t.results; ++result) {
    const uint8_t* const column = t.columns + result * t.stride * column_bytes;
    __m512i sums[4];
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) sums[n] = _mm512_loadu_si512(t.added + n * 16);
    for (int64_t j = 0; j < t.kernel_columns; ++j)
      for (int64_t at = 0; at < column_bytes; at += kDepthwiseGroup)
#pragma GCC unroll 4
        for (int n = 0; n < 4; ++n)
          sums[n] =
              _mm512_dpbusd_epi32(sums[n], _mm512_loadu_si512(column + j * t.dilation * column_bytes + at + n * 64),
                                  _mm512_loadu_si512(t.weights + j * column_bytes + at + n * 64));
    store_result(t, end, sums, result);
  }
}

WEFT_VNNI_TARGET void run_tile(const DepthwiseTile& t) {
  const VnniEnd end = vnni_end(t.zero_point, t.range, t.is_signed, t.channels);
  const int64_t columns = depthwise_columns(t.results, t.kernel_columns, t.stride, t.dilation);
  uint8_t* to = t.columns;
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t group = 0; group < t.row_groups; ++group, to += kDepthwiseGroup)
      spread_column(t, group, t.first_column + column, end.bytes, to);
  t.kernel_columns == 3 && t.row_groups == 1 ? multiply_three(t, end) : multiply_any(t, end);
}

}  // namespace

RunDepthwiseTile vnni_depthwise_tile() { return __builtin_cpu_supports("avx512vnni") ? run_tile : nullptr; }

}  // namespace weft::native

#else

namespace weft::native {

RunDepthwiseTile vnni_depthwise_tile() { return nullptr; }

}  // namespace weft::native

#endif
