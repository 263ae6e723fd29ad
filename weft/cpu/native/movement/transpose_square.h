// Transposition of one square tile in registers. Included by loops that are compiled per instruction set
// (multiversion.h), inside that set's namespace: hence no include guard and no includes.

/// Elements that are transposed together: as many rows as columns, each row a vector. Those of 2 bytes, of which a
/// whole vector would make more rows than there are registers, fill half of one.
template <typename T>
struct Tile {
  static constexpr int64_t kSide = sizeof(T) == 8 ? kLanes / 2 : sizeof(T) == 4 ? kLanes : kLanes == 16 ? 16 : 8;
  typedef T Row __attribute__((vector_size(kSide * sizeof(T))));
};

/// a[0], b[0], a[1], b[1], ...: from the first halves of two vectors, or (Second = 1) from their second halves.
template <int Second, typename Row, size_t... I>
WEFT_INLINE Row interleave(Row a, Row b, std::index_sequence<I...>) {
  constexpr int kSide = static_cast<int>(sizeof...(I));
  return __builtin_shufflevector(a, b,
                                 (Second * (kSide / 2) + static_cast<int>(I / 2) + static_cast<int>(I % 2) * kSide)...);
}

/// Transposes a tile in registers: each interleaving of row i with row i + kSide / 2 moves one bit of the row number
/// into the column number.
template <typename T>
WEFT_INLINE void transpose_square(T* to, int64_t to_stride, const T* from, int64_t from_stride) {
  using Row = typename Tile<T>::Row;
  constexpr int64_t kSide = Tile<T>::kSide;
  constexpr auto places = std::make_index_sequence<kSide>{};
  Row rows[kSide], mixed[kSide];
  for (int64_t i = 0; i < kSide; ++i) __builtin_memcpy(&rows[i], from + i * from_stride, sizeof(Row));
  for (int64_t step = 1; step < kSide; step *= 2) {
    for (int64_t i = 0; i < kSide / 2; ++i) {
      mixed[2 * i] = interleave<0>(rows[i], rows[i + kSide / 2], places);
      mixed[2 * i + 1] = interleave<1>(rows[i], rows[i + kSide / 2], places);
    }
    for (int64_t i = 0; i < kSide; ++i) rows[i] = mixed[i];
  }
  for (int64_t i = 0; i < kSide; ++i) __builtin_memcpy(to + i * to_stride, &rows[i], sizeof(Row));
}
