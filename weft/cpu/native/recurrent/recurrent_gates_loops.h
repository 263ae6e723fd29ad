// Loops over the hidden state of one row; compiled per instruction set (multiversion.h).

#include "weft/cpu/native/support/vector_math.h"

void lstm_row(const LstmRow& row) {
  const int64_t width = row.width;
  const float *x = row.projected, *u = row.product, *b = row.bias, *before = row.cell_before;
  float *gates = row.gates, *cell = row.cell, *output = row.output;
#pragma omp simd
  for (int64_t k = 0; k < row.units; ++k) {
    const float i = sigmoid_of(x[k] + u[k] + b[k]);
    const float f = sigmoid_of(x[width + k] + u[width + k] + b[width + k]);
    const float g = tanh_of(x[2 * width + k] + u[2 * width + k] + b[2 * width + k]);
    const float o = sigmoid_of(x[3 * width + k] + u[3 * width + k] + b[3 * width + k]);
    const float next = f * before[k] + i * g;
    gates[k] = i;
    gates[width + k] = f;
    gates[2 * width + k] = g;
    gates[3 * width + k] = o;
    cell[k] = next;
    output[k] = o * tanh_of(next);
  }
}

template <bool has_cells_gradient>
WEFT_INLINE void lstm_backward_of(const LstmBackwardRow& row) {
  const int64_t width = row.width;
  const float *dy = row.output_gradient, *later = row.hidden_gradient, *extra = row.cells_gradient;
  const float *before = row.cell_before, *cell = row.cell, *gates = row.gates;
  float *carried = row.cell_gradient, *gradient = row.gates_gradient;
#pragma omp simd
  for (int64_t k = 0; k < width; ++k) {
    const float i = gates[k], f = gates[width + k], g = gates[2 * width + k], o = gates[3 * width + k];
    const float squashed = tanh_of(cell[k]), dh = dy[k] + later[k];
    float dc = carried[k] + dh * o * (1.0f - squashed * squashed);
    if constexpr (has_cells_gradient) dc += extra[k];
    gradient[k] = dc * g * i * (1.0f - i);
    gradient[width + k] = dc * before[k] * f * (1.0f - f);
    gradient[2 * width + k] = dc * i * (1.0f - g * g);
    gradient[3 * width + k] = dh * squashed * o * (1.0f - o);
    carried[k] = dc * f;
  }
}

void lstm_backward_row(const LstmBackwardRow& row) {
  row.cells_gradient ? lstm_backward_of<true>(row) : lstm_backward_of<false>(row);
}

void gru_row(const GruRow& row) {
  const int64_t width = row.width;
  const float *x = row.projected, *u = row.product, *xb = row.input_bias, *ub = row.recurrent_bias;
  const float* before = row.hidden_before;
  float *gates = row.gates, *output = row.output;
#pragma omp simd
  for (int64_t k = 0; k < width; ++k) {
    const float r = sigmoid_of((x[k] + xb[k]) + (u[k] + ub[k]));
    const float z = sigmoid_of((x[width + k] + xb[width + k]) + (u[width + k] + ub[width + k]));
    const float un = u[2 * width + k] + ub[2 * width + k];
    const float n = tanh_of((x[2 * width + k] + xb[2 * width + k]) + r * un);
    gates[k] = r;
    gates[width + k] = z;
    gates[2 * width + k] = n;
    gates[3 * width + k] = un;
    output[k] = (1.0f - z) * n + z * before[k];
  }
}

void gru_backward_row(const GruBackwardRow& row) {
  const int64_t width = row.width;
  const float *dy = row.output_gradient, *later = row.product, *before = row.hidden_before, *gates = row.gates;
  float *carried = row.hidden_gradient, *projected = row.projected_gradient, *recurrent = row.recurrent_gradient;
#pragma omp simd
  for (int64_t k = 0; k < width; ++k) {
    const float r = gates[k], z = gates[width + k], n = gates[2 * width + k], un = gates[3 * width + k];
    const float dh = dy[k] + (carried[k] + later[k]);
    const float dn = dh * (1.0f - z) * (1.0f - n * n);
    const float dr = dn * un * r * (1.0f - r), dz = dh * (before[k] - n) * z * (1.0f - z);
    projected[k] = dr;
    projected[width + k] = dz;
    projected[2 * width + k] = dn;
    recurrent[k] = dr;
    recurrent[width + k] = dz;
    recurrent[2 * width + k] = dn * r;
    carried[k] = dh * z;
  }
}

constexpr Loops loops{lstm_row, gru_row};
constexpr TrainingLoops training_loops{lstm_backward_row, gru_backward_row};
