// Loops of transposition over one plane; compiled per instruction set (multiversion.h).

#include "weft/cpu/native/movement/transpose_square.h"

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
  constexpr bool has_squares = sizeof(T) == 4 || sizeof(T) == 2;
  constexpr int64_t kTile = has_squares ? Tile<T>::kSide : 16;
  T* const to = reinterpret_cast<T*>(to_bytes);
  const T* const from = reinterpret_cast<const T*>(from_bytes);
  for (int64_t column = 0; column < columns; column += kTile)
    for (int64_t row = 0; row < rows; row += kTile) {
      T* const tile = to + row * to_stride + column;
      const T* const source = from + column * from_stride + row;
      const int64_t height = std::min(kTile, rows - row), width = std::min(kTile, columns - column);
      if (height < kTile || width < kTile) {
        transpose_block(tile, to_stride, source, from_stride, height, width);
      } else if constexpr (has_squares) {
        transpose_square<T>(tile, to_stride, source, from_stride);
      } else {
        transpose_block(tile, to_stride, source, from_stride, kTile, kTile);
      }
    }
}

// Elements of 4 bytes travel as floats, whatever they are: moving changes no bit.
constexpr Loops loops{
    {transpose_plane<uint8_t>, transpose_plane<uint16_t>, transpose_plane<float>, transpose_plane<uint64_t>}};
