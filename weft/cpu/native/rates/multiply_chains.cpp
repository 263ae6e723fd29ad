#include "weft/cpu/native/rates/multiply_chains.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::native {

namespace {

// Latency 4 times 2 units, and some to spare; with the two operands 14 of 16 registers.
constexpr int kChains = 12;
using Four = float __attribute__((vector_size(16)));

// Sums tend to b / (1 - a): they neither grow without bound nor become subnormal.
constexpr float kFactor = 0.5f, kSummand = 0.25f;

float chains_of_four(int64_t rounds) {
  Four sums[kChains] = {};
  const Four a = {kFactor, kFactor, kFactor, kFactor}, b = {kSummand, kSummand, kSummand, kSummand};
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = sums[chain] * a + b;
  Four total = {};
  for (const Four& sum : sums) total += sum;
  return total[0] + total[1] + total[2] + total[3];
}

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) float chains_avx2(int64_t rounds) {
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  const __m256 a = _mm256_set1_ps(kFactor), b = _mm256_set1_ps(kSummand);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm256_fmadd_ps(sums[chain], a, b);
  __m256 total = _mm256_setzero_ps();
  for (const __m256& sum : sums) total = _mm256_add_ps(total, sum);
  return _mm256_cvtss_f32(total);
}

__attribute__((target("avx512f"))) float chains_avx512(int64_t rounds) {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const __m512 a = _mm512_set1_ps(kFactor), b = _mm512_set1_ps(kSummand);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_fmadd_ps(sums[chain], a, b);
  __m512 total = _mm512_setzero_ps();
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  return _mm512_cvtss_f32(total);
}

__attribute__((target("avx512f,avx512bf16"))) float chains_bf16(int64_t rounds) {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const auto one = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_dpbf16_ps(sums[chain], one, one);
  __m512 total = _mm512_setzero_ps();
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  return _mm512_cvtss_f32(total);
}

#endif

}  // namespace

MultiplyChains multiply_chains(DType dtype, Isa isa) {
#if defined(__x86_64__)
  if (dtype == DType::bf16 && isa == Isa::avx512 && __builtin_cpu_supports("avx512bf16"))
    return {chains_bf16, kChains * 16 * 4, "vdpbf16ps on 512 bits"};
  if (dtype == DType::f32 && isa == Isa::avx512) return {chains_avx512, kChains * 16 * 2, "vfmadd231ps on 512 bits"};
  if (dtype == DType::f32 && isa == Isa::avx2) return {chains_avx2, kChains * 8 * 2, "vfmadd231ps on 256 bits"};
#endif
  if (dtype == DType::f32) return {chains_of_four, kChains * 4 * 2, "mulps and addps"};
  return {};
}

}  // namespace weft::native
