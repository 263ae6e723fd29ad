// Loops of product_sgd_update over one panel of columns; compiled per instruction set (multiversion.h). Results may
// overwrite their operands element by element.

constexpr int64_t kTileVectors = kLanes == 16 ? 4 : 2;  // with kTileRows: what the registers of each set hold
constexpr int64_t kTileColumns = kTileVectors * kLanes;
constexpr int64_t kTilesAhead = 2;  // whose states are asked for: memory takes longer than the product of few rows

struct Step {
  float rate, momentum, decay, from_gradient, from_velocity;

  template <typename V>
  WEFT_INLINE void update(V gradient, const float* parameter, const float* velocity, float* next_parameter,
                          float* next_velocity) const {
    const V old = load<V>(parameter);
    gradient = gradient + decay * old;
    const V moved = momentum * load<V>(velocity) + gradient;
    store<V>(next_velocity, moved);
    store<V>(next_parameter, old - rate * (from_gradient * gradient + from_velocity * moved));
  }
};

/// Tile by tile the terms of the panel's columns one after the other, zeros beyond the last column.
template <typename T>
void pack_panel(const PanelUpdate<T>& p) {
  float* to = p.panel;
  for (int64_t column = p.first_column; column < p.last_column; column += kTileColumns)
    for (int64_t term = 0; term < p.terms; ++term, to += kTileColumns) {
      const T* from = p.right + term * p.columns + column;
      const int64_t count = std::min(kTileColumns, p.last_column - column);
      if (count == kTileColumns)
        for (int64_t v = 0; v < kTileColumns; v += kLanes) store<FloatVector>(to + v, load<FloatVector>(from + v));
      else
        for (int64_t c = 0; c < kTileColumns; ++c) to[c] = c < count ? load<float>(from + c) : 0.0f;
    }
}

/// Term by term the block's rows, zeros beyond the last.
template <typename T>
void pack_block(const PanelUpdate<T>& p, int64_t first, int64_t count) {
  for (int64_t term = 0; term < p.terms; ++term)
    for (int64_t r = 0; r < kTileRows; ++r)
      p.block[term * kTileRows + r] = r < count ? load<float>(p.left + term * p.rows + first + r) : 0.0f;
}

/// The tile at `at` is multiplied and updated while the states at `ahead` are asked for.
template <typename T>
WEFT_INLINE void update_tile(const PanelUpdate<T>& p, const Step& step, const float* right, int64_t at, int64_t ahead,
                             int64_t rows, int64_t columns) {
  FloatVector sums[kTileRows][kTileVectors] = {};
  const float* left = p.block;
  for (int64_t part = 0; part < kTileRows; ++part) {
    for (int64_t line = 0; line < kTileColumns; line += 16) {
      __builtin_prefetch(p.parameter + ahead + part * p.columns + line);
      __builtin_prefetch(p.velocity + ahead + part * p.columns + line);
    }
    const int64_t terms = p.terms * (part + 1) / kTileRows - p.terms * part / kTileRows;
    for (int64_t term = 0; term < terms; ++term, left += kTileRows, right += kTileColumns) {
      FloatVector factors[kTileVectors];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kTileVectors; ++v) factors[v] = load<FloatVector>(right + v * kLanes);
#pragma GCC unroll 6
      for (int64_t r = 0; r < kTileRows; ++r)
#pragma GCC unroll 4
        for (int64_t v = 0; v < kTileVectors; ++v) sums[r][v] += left[r] * factors[v];
    }
  }
  if (rows == kTileRows && columns == kTileColumns) {
#pragma GCC unroll 6
    for (int64_t r = 0; r < kTileRows; ++r)
#pragma GCC unroll 4
      for (int64_t v = 0; v < kTileVectors; ++v) {
        const int64_t place = at + r * p.columns + v * kLanes;
        step.update<FloatVector>(sums[r][v], p.parameter + place, p.velocity + place, p.next_parameter + place,
                                 p.next_velocity + place);
      }
    return;
  }
  float gradient[kTileRows * kTileColumns];
#pragma GCC unroll 6
  for (int64_t r = 0; r < kTileRows; ++r)
#pragma GCC unroll 4
    for (int64_t v = 0; v < kTileVectors; ++v) store<FloatVector>(gradient + r * kTileColumns + v * kLanes, sums[r][v]);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t place = at + r * p.columns + c;
      step.update<float>(gradient[r * kTileColumns + c], p.parameter + place, p.velocity + place,
                         p.next_parameter + place, p.next_velocity + place);
    }
}

template <typename T>
void update(const PanelUpdate<T>& p) {
  const Step step{p.learning_rate, p.momentum, p.weight_decay, p.nesterov ? 1.0f : 0.0f,
                  p.nesterov ? p.momentum : 1.0f};
  const int64_t tiles = (p.last_column - p.first_column + kTileColumns - 1) / kTileColumns;
  const auto place = [&](int64_t block, int64_t tile) {
    return block * kTileRows * p.columns + p.first_column + tile * kTileColumns;
  };
  pack_panel(p);
  for (int64_t block = p.first_block; block < p.last_block; ++block) {
    const int64_t rows = std::min(kTileRows, p.rows - block * kTileRows);
    pack_block(p, block * kTileRows, rows);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t next = tile + kTilesAhead;
      update_tile(p, step, p.panel + tile * p.terms * kTileColumns, place(block, tile),
                  place(block + next / tiles, next % tiles), rows,
                  std::min(kTileColumns, p.last_column - p.first_column - tile * kTileColumns));
    }
  }
}

template <typename T>
constexpr Loops<T> loops{update<T>};
