// Loops of transposition over one plane; compiled per instruction set (multiversion.h).

/// a[0], b[0], a[1], b[1], ...: from the first halves of two vectors, or (Second = 1) from their second halves.
template <int Second, size_t... I>
WEFT_INLINE FloatVector interleave(FloatVector a, FloatVector b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (Second * (kLanes / 2) + static_cast<int>(I / 2 + (I % 2) * kLanes))...);
}

/// Transposes kLanes x kLanes elements of 4 bytes in registers: each interleaving of row i with row i + kLanes / 2
/// moves one bit of the row number into the column number.
WEFT_INLINE void transpose_square(float* to, int64_t to_stride, const float* from, int64_t from_stride) {
  constexpr auto lanes = std::make_index_sequence<kLanes>{};
  FloatVector rows[kLanes], mixed[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) rows[i] = load<FloatVector>(from + i * from_stride);
  for (int64_t step = 1; step < kLanes; step *= 2) {
    for (int64_t i = 0; i < kLanes / 2; ++i) {
      mixed[2 * i] = interleave<0>(rows[i], rows[i + kLanes / 2], lanes);
      mixed[2 * i + 1] = interleave<1>(rows[i], rows[i + kLanes / 2], lanes);
    }
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = mixed[i];
  }
  for (int64_t i = 0; i < kLanes; ++i) store(to + i * to_stride, rows[i]);
}

template <typename T>
WEFT_INLINE void transpose_block(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t rows,
                                 int64_t columns) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      to[row * to_stride + column] = from[column * from_stride + row];
}

template <typename T>
void transpose_plane(std::byte* to_bytes, int64_t to_stride, const std::byte* from_bytes, int64_t from_stride,
                     int64_t rows, int64_t columns) {
  constexpr int64_t kTile = sizeof(T) == 4 ? kLanes : 16;
  T* const to = reinterpret_cast<T*>(to_bytes);
  const T* const from = reinterpret_cast<const T*>(from_bytes);
  for (int64_t column = 0; column < columns; column += kTile)
    for (int64_t row = 0; row < rows; row += kTile) {
      T* const tile = to + row * to_stride + column;
      const T* const source = from + column * from_stride + row;
      const int64_t height = std::min(kTile, rows - row), width = std::min(kTile, columns - column);
      if (height < kTile || width < kTile) {
        transpose_block(tile, to_stride, source, from_stride, height, width);
      } else if constexpr (sizeof(T) == 4) {
        transpose_square(tile, to_stride, source, from_stride);
      } else {
        transpose_block(tile, to_stride, source, from_stride, kTile, kTile);
      }
    }
}

// Elements of 4 bytes travel as floats, whatever they are: moving changes no bit.
constexpr Loops loops{
    {transpose_plane<uint8_t>, transpose_plane<uint16_t>, transpose_plane<float>, transpose_plane<uint64_t>}};
