// What the loops of product_sgd_update are given: one panel of columns, and some of its blocks of rows.
#pragma once

#include <cstdint>

#include "weft/cpu/native/support/stored_type.h"

namespace weft::native {

constexpr int64_t kTileRows = 6;  // with the columns of each instruction set's tile: what its registers hold

template <typename T>
struct PanelUpdate {
  const T *left, *right;  // [terms, rows], [terms, columns]
  int64_t terms, rows, columns;
  const float *parameter, *velocity;
  float *next_parameter, *next_velocity;
  float learning_rate, momentum, weight_decay;
  bool nesterov;
  int64_t first_column, last_column;  // of the panel
  int64_t first_block, last_block;    // of kTileRows rows each
  float *panel, *block;               // room for the operands as the products read them: 4 bytes for each number
};

/// Multiplies pairs of bf16 numbers (AVX512_BF16); null where this CPU cannot.
void (*product_update_by_pairs())(const PanelUpdate<Bf16>&);

}  // namespace weft::native
