// What LSTM and GRU layers do in a step beside their matrix product, for one row of the batch and in one pass.
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/isa.h"
#include "weft/device/kernel.h"

namespace weft::native {

// Rows of gates are [gates H], one gate after the other; all others are [H].

struct LstmRow {
  int64_t width, units;  // of the layer; and so many of them, to whose first the pointers point
  const float *projected, *product, *bias, *cell_before;
  float *output, *cell, *gates;
};
struct LstmBackwardRow {
  int64_t width;
  const float *output_gradient, *cells_gradient;  // the latter may be null
  const float* hidden_gradient;                   // what the step after passes back
  const float *cell_before, *cell, *gates;
  float* cell_gradient;  // of the step after, replaced by this step's
  float* gates_gradient;
};
struct GruRow {
  int64_t width;
  const float *projected, *product, *input_bias, *recurrent_bias, *hidden_before;
  float *output, *gates;
};
struct GruBackwardRow {
  int64_t width;
  const float *output_gradient, *product;  // the latter: what the step after passes back through its gates
  const float *hidden_before, *gates;
  float* hidden_gradient;  // what the step after passes back past its gates, replaced by this step's
  float *projected_gradient, *recurrent_gradient;
};

struct RecurrentGates {
  void (*lstm)(const LstmRow&);
  void (*gru)(const GruRow&);
};
const RecurrentGates& recurrent_gates(Isa isa);

struct RecurrentGradientGates {
  void (*lstm_backward)(const LstmBackwardRow&);
  void (*gru_backward)(const GruBackwardRow&);
};
const RecurrentGradientGates& recurrent_gradient_gates(Isa isa);

/// Whether all operands are plain, and f32 but for the recurrent weights, the second one, which may be of a narrower
/// type; else says which is not.
bool is_plain_recurrence(const NodeSignature& node, std::string& why_not);

}  // namespace weft::native
