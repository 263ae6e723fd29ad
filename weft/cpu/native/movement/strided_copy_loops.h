// Loops over rows of a strided copy, per element size; compiled per instruction set (multiversion.h).

template <typename T>
WEFT_INLINE T load_unit(const std::byte* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

/// Rows of a length that is known here are copied in place, without a call for each.
template <size_t bytes>
WEFT_INLINE void copy_rows(const CopyRows& r) {
  for (int64_t row = 0; row < r.rows; ++row) __builtin_memcpy(r.to + row * r.to_row, r.from + row * r.from_row, bytes);
}

template <typename T>
void copy_contiguous(const CopyRows& r) {
  const size_t bytes = static_cast<size_t>(r.count) * sizeof(T);
  if (bytes == 16) return copy_rows<16>(r);
  if (bytes == 32) return copy_rows<32>(r);
  if (bytes == 64) return copy_rows<64>(r);
  if (bytes == 128) return copy_rows<128>(r);
  for (int64_t row = 0; row < r.rows; ++row) std::memcpy(r.to + row * r.to_row, r.from + row * r.from_row, bytes);
}

template <typename T>
void copy_repeat(const CopyRows& r) {
  const int64_t count = r.count;
  for (int64_t row = 0; row < r.rows; ++row) {
    const T value = load_unit<T>(r.from + row * r.from_row);
    T* const out = reinterpret_cast<T*>(r.to + row * r.to_row);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) out[i] = value;
  }
}

template <typename T>
void copy_strided(const CopyRows& r) {
  for (int64_t row = 0; row < r.rows; ++row)
    for (int64_t i = 0; i < r.count; ++i) {
      const T value = load_unit<T>(r.from + row * r.from_row + i * r.from_step);
      __builtin_memcpy(r.to + row * r.to_row + i * r.to_step, &value, sizeof value);
    }
}

constexpr Loops loops{
    {copy_contiguous<uint8_t>, copy_contiguous<uint16_t>, copy_contiguous<uint32_t>, copy_contiguous<uint64_t>},
    {copy_repeat<uint8_t>, copy_repeat<uint16_t>, copy_repeat<uint32_t>, copy_repeat<uint64_t>},
    {copy_strided<uint8_t>, copy_strided<uint16_t>, copy_strided<uint32_t>, copy_strided<uint64_t>}};
