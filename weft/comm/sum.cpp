#include "weft/comm/sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "weft/base/isa.h"

namespace weft::comm {

namespace {

struct Loops {
  void (*widen)(const uint16_t*, float*, int64_t);
  void (*narrow)(const float*, uint16_t*, int64_t);
  void (*widen_f16)(const uint16_t*, float*, int64_t);
  void (*narrow_f16)(const float*, uint16_t*, int64_t);
  void (*scale)(float*, int64_t, float);
  void (*add)(const float*, float*, int64_t);
  void (*add_bf16)(const uint16_t*, float*, int64_t);
  void (*add_pair)(const float*, const float*, float*, int64_t);
  void (*add_pair_bf16)(const uint16_t*, const uint16_t*, float*, int64_t);
  void (*exchange_sum)(float*, float*, int64_t, float);
};

namespace baseline {
#include "weft/comm/sum_loops.h"
}  // namespace baseline

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
namespace avx2 {
#include "weft/comm/sum_loops.h"
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")
#endif
namespace avx512 {
#include "weft/comm/sum_loops.h"
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const Loops& choose_loops() {
  const Isa isa = detect_isa();
  return isa == Isa::avx512 ? avx512::loops : isa == Isa::avx2 ? avx2::loops : baseline::loops;
}

#else

const Loops& choose_loops() { return baseline::loops; }

#endif

const Loops& loops() {
  static const Loops& chosen = choose_loops();
  return chosen;
}

constexpr int64_t kBlock = 1024;  // elements: some blocks fit into the nearest cache
using Block = std::array<float, kBlock>;

const float* f32(const void* data) { return static_cast<const float*>(data); }
const uint16_t* bits(const void* data) { return static_cast<const uint16_t*>(data); }
const void* element(DType dtype, const void* data, int64_t at) {
  return static_cast<const std::byte*>(data) + byte_size(dtype, at);
}

void add_f16(const uint16_t* from, float* to, int64_t count) {
  alignas(64) Block wide;
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t some = std::min(kBlock, count - at);
    loops().widen_f16(from + at, wide.data(), some);
    loops().add(wide.data(), to + at, some);
  }
}

/// The sum of the sources' elements [at, at + count) in the order of a balanced tree. Recursion is as deep as the tree.
void tree_sum(DType dtype, std::span<const void* const> sources, int64_t at, int64_t count, float* to) {
  if (sources.size() == 1) return widen_to_f32(dtype, element(dtype, sources[0], at), to, count);
  if (sources.size() == 2) {
    const void *const left = element(dtype, sources[0], at), *const right = element(dtype, sources[1], at);
    if (dtype == DType::f32) return loops().add_pair(f32(left), f32(right), to, count);
    if (dtype == DType::bf16) return loops().add_pair_bf16(bits(left), bits(right), to, count);
    widen_to_f32(dtype, left, to, count);
    return add_to_f32(dtype, right, to, count);
  }
  const size_t left = std::bit_ceil(sources.size()) / 2;
  tree_sum(dtype, sources.first(left), at, count, to);
  if (sources.size() - left == 1) {
    add_to_f32(dtype, element(dtype, sources[left], at), to, count);
    return;
  }
  alignas(64) Block right;
  tree_sum(dtype, sources.subspan(left), at, count, right.data());
  loops().add(right.data(), to, count);
}

void store_to_all(DType dtype, const float* values, std::span<void* const> targets, int64_t at, int64_t count) {
  for (void* const target : targets)
    narrow_from_f32(dtype, values, static_cast<std::byte*>(target) + byte_size(dtype, at), count);
}

}  // namespace

void sum_to_all(DType dtype, std::span<const void* const> sources, std::span<void* const> targets, int64_t begin,
                int64_t end, float factor) {
  if (dtype == DType::f32 && sources.size() == 2 && targets.size() == 2 && sources[0] == targets[0] &&
      sources[1] == targets[1]) {
    loops().exchange_sum(static_cast<float*>(targets[0]) + begin, static_cast<float*>(targets[1]) + begin, end - begin,
                         factor);
    return;
  }
  alignas(64) Block sum;
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    tree_sum(dtype, sources, at, count, sum.data());
    if (factor != 1.0f) loops().scale(sum.data(), count, factor);
    store_to_all(dtype, sum.data(), targets, at, count);
  }
}

void sum_to_f32(DType dtype, std::span<const void* const> sources, float* to, int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end; at += kBlock)
    tree_sum(dtype, sources, at, std::min(kBlock, end - at), to + (at - begin));
}

void scale_to_all(DType dtype, const float* from, std::span<void* const> targets, int64_t begin, int64_t end,
                  float factor) {
  alignas(64) Block scaled;
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    std::memcpy(scaled.data(), from + (at - begin), static_cast<size_t>(count) * sizeof(float));
    if (factor != 1.0f) loops().scale(scaled.data(), count, factor);
    store_to_all(dtype, scaled.data(), targets, at, count);
  }
}

void scale_f32(float* values, int64_t count, float factor) { loops().scale(values, count, factor); }

void add_to_f32(DType dtype, const void* from, float* to, int64_t count) {
  if (dtype == DType::f32)
    loops().add(f32(from), to, count);
  else if (dtype == DType::bf16)
    loops().add_bf16(bits(from), to, count);
  else
    add_f16(bits(from), to, count);
}

void widen_to_f32(DType dtype, const void* from, float* to, int64_t count) {
  if (dtype == DType::f32)
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  else
    (dtype == DType::bf16 ? loops().widen : loops().widen_f16)(bits(from), to, count);
}

void narrow_from_f32(DType dtype, const float* from, void* to, int64_t count) {
  if (dtype == DType::f32)
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  else
    (dtype == DType::bf16 ? loops().narrow : loops().narrow_f16)(from, static_cast<uint16_t*>(to), count);
}

}  // namespace weft::comm
