// One element of any dtype as a number, and back: what a cast means.
//
//   from floating to integer  truncated towards zero, saturated at the limits; NaN becomes 0
//   from integer to integer   the lowest bits: wraps around
//   to floating               rounded once, to nearest even; too large a number becomes infinite
//   to bool                   whether it is not 0; NaN is not
//
// A 64-bit integer never passes through a double.
#pragma once

#include <concepts>
#include <cstdint>

#include "weft/tensor/dtype.h"

namespace weft {

/// Calls function(T{}) with the type in which numbers of the dtype are computed without loss: double for the floating
/// types, int64_t for the integers with a sign, uint64_t for those without one and for booleans.
template <typename Function>
decltype(auto) visit_number(DType dtype, Function&& function) {
  if (is_floating(dtype)) return function(double{});
  if (is_signed(dtype)) return function(int64_t{});
  return function(uint64_t{});
}

/// The element as one of these types, converted as a cast would where it is another than the dtype's own.
template <typename T>
T load_as(DType dtype, const void* data, int64_t index);
template <>
double load_as<double>(DType dtype, const void* data, int64_t index);
template <>
int64_t load_as<int64_t>(DType dtype, const void* data, int64_t index);
template <>
uint64_t load_as<uint64_t>(DType dtype, const void* data, int64_t index);

// Of a packed type they change the element's bits alone.
void store_number(DType dtype, void* data, int64_t index, double value);
void store_number(DType dtype, void* data, int64_t index, int64_t value);
void store_number(DType dtype, void* data, int64_t index, uint64_t value);

/// For what is floating by nature: a number that need not be exact beyond 2^53.
inline double load_element(DType dtype, const void* data, int64_t index) { return load_as<double>(dtype, data, index); }
inline void store_element(DType dtype, void* data, int64_t index, double value) {
  store_number(dtype, data, index, value);
}

/// The same bits: of one dtype, between two places.
void copy_element(DType dtype, const void* source, int64_t source_index, void* target, int64_t target_index);
/// As a cast, between two dtypes.
void convert_element(DType from, const void* source, int64_t source_index, DType to, void* target,
                     int64_t target_index);

}  // namespace weft
