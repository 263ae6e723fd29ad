// Compiles one header of loops for each instruction set, in one translation unit. No include guard: made to be used
// once per source file, which first declares `struct Loops` (a table of function pointers) in weft::native's unnamed
// namespace, defines WEFT_LOOPS as the header's name and then includes this file. The header defines
// `constexpr Loops loops` and is compiled in the namespaces baseline, avx2 and avx512, after vector.h. `loops_for(isa)`
// gives the table to call through. Where WEFT_LOOPS_PER_TYPE is defined too, `Loops` is a template over the type of the
// numbers in memory (stored_type.h), so is `loops`, and `loops_for<T>(isa)` gives the table of one type. Where
// WEFT_TRAINING_LOOPS is defined besides, so is `TrainingLoops` with `training_loops` and `training_loops_for<T>(isa)`:
// what inference does not call stands in a table of its own, and is not linked with it.
//
// Why not __attribute__((target_clones)): it compares whole CPU models for "arch=", neither compiler clones the
// helpers and lambdas that a function calls, clang 14 refuses templates, and tests could reach one version only.
// Lambdas given to parallel_for are compiled for the baseline: they must do no more than call a loop.
//
// The standard headers that loops use have to be included before this file, so that their functions are compiled for
// the baseline and may be shared by all translation units.
#if !defined(WEFT_LOOPS)
#error "define WEFT_LOOPS first"
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "weft/base/isa.h"
#include "weft/cpu/native/support/stored_type.h"

#define WEFT_INLINE inline __attribute__((always_inline))

#define WEFT_LANES 4
namespace weft::native {
namespace {
namespace baseline {
#include "weft/cpu/native/support/vector.h"
#include WEFT_LOOPS
}  // namespace baseline
}  // namespace
}  // namespace weft::native
#undef WEFT_LANES

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define WEFT_LANES 8
namespace weft::native {
namespace {
namespace avx2 {
#include "weft/cpu/native/support/vector.h"
#include WEFT_LOOPS
}  // namespace avx2
}  // namespace
}  // namespace weft::native
#undef WEFT_LANES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#define WEFT_LANES 16
namespace weft::native {
namespace {
namespace avx512 {
#include "weft/cpu/native/support/vector.h"
#include WEFT_LOOPS
}  // namespace avx512
}  // namespace
}  // namespace weft::native
#undef WEFT_LANES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace weft::native {
namespace {
#if defined(WEFT_LOOPS_PER_TYPE)
template <typename T>
const Loops<T>& loops_for(Isa isa) {
  return isa == Isa::avx512 ? avx512::loops<T> : isa == Isa::avx2 ? avx2::loops<T> : baseline::loops<T>;
}
#if defined(WEFT_TRAINING_LOOPS)
template <typename T>
const TrainingLoops<T>& training_loops_for(Isa isa) {
  return isa == Isa::avx512 ? avx512::training_loops<T>
         : isa == Isa::avx2 ? avx2::training_loops<T>
                            : baseline::training_loops<T>;
}
#endif
#else
const Loops& loops_for(Isa isa) {
  return isa == Isa::avx512 ? avx512::loops : isa == Isa::avx2 ? avx2::loops : baseline::loops;
}
#if defined(WEFT_TRAINING_LOOPS)
const TrainingLoops& training_loops_for(Isa isa) {
  return isa == Isa::avx512 ? avx512::training_loops
         : isa == Isa::avx2 ? avx2::training_loops
                            : baseline::training_loops;
}
#endif
#endif
}  // namespace
}  // namespace weft::native

#else

namespace weft::native {
namespace {
#if defined(WEFT_LOOPS_PER_TYPE)
template <typename T>
const Loops<T>& loops_for(Isa) {
  return baseline::loops<T>;
}
#if defined(WEFT_TRAINING_LOOPS)
template <typename T>
const TrainingLoops<T>& training_loops_for(Isa) {
  return baseline::training_loops<T>;
}
#endif
#else
const Loops& loops_for(Isa) { return baseline::loops; }
#if defined(WEFT_TRAINING_LOOPS)
const TrainingLoops& training_loops_for(Isa) { return baseline::training_loops; }
#endif
#endif
}  // namespace
}  // namespace weft::native

#endif
