// Sums over ranks: what all-reduce computes, in vector code chosen at run time. f32, bf16 and f16; always summed in
// f32.
#pragma once

#include <cstdint>
#include <span>

#include "weft/tensor/dtype.h"

namespace weft::comm {

/// targets[k][i] = factor * (sum over the sources of [i]) for all k and i in [begin, end), rounded once. Summed in the
/// order of a balanced binary tree: ((s0 + s1) + (s2 + s3)) + (s4 + ...). Targets may be sources.
void sum_to_all(DType dtype, std::span<const void* const> sources, std::span<void* const> targets, int64_t begin,
                int64_t end, float factor);

/// The same to one array of f32, from to[0] on.
void sum_to_f32(DType dtype, std::span<const void* const> sources, float* to, int64_t begin, int64_t end);

/// targets[k][begin + i] = factor * from[i], rounded.
void scale_to_all(DType dtype, const float* from, std::span<void* const> targets, int64_t begin, int64_t end,
                  float factor);

/// values[i] *= factor
void scale_f32(float* values, int64_t count, float factor);

/// to[i] += from[i], which is of the dtype.
void add_to_f32(DType dtype, const void* from, float* to, int64_t count);

void widen_to_f32(DType dtype, const void* from, float* to, int64_t count);
void narrow_from_f32(DType dtype, const float* from, void* to, int64_t count);

}  // namespace weft::comm
