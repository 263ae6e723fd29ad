// A part of an LSTM's hidden units in one step; compiled per instruction set (multiversion.h).

#include "weft/cpu/native/product/dot_products.h"
#include "weft/cpu/native/support/vector_math.h"

/// sums[gate][row][unit - begin] of the hidden state before, times the recurrent weights.
template <int64_t rows>
WEFT_INLINE void recurrent_sums(const LstmStep& step, int64_t begin, int64_t end, float* sums) {
  constexpr int64_t kBeside = 4;
  const int64_t units = end - begin;
  float products[rows * kBeside];
  for (int64_t gate = 0; gate < 4; ++gate) {
    float* const to = sums + gate * rows * units;
    const auto put = [&](int64_t unit, int64_t count) {
      for (int64_t column = 0; column < count; ++column)
        for (int64_t row = 0; row < rows; ++row)
          to[row * units + unit - begin + column] = products[column * rows + row];
    };
    const float* const weight = step.weight + gate * step.width * step.width;
    int64_t unit = begin;
    for (; unit + kBeside <= end; unit += kBeside) {
      dot_products<rows, kBeside>(step.hidden_before, weight + unit * step.width, step.width, products);
      put(unit, kBeside);
    }
    for (; unit < end; ++unit) {
      dot_products<rows, 1>(step.hidden_before, weight + unit * step.width, step.width, products);
      put(unit, 1);
    }
  }
}

template <int64_t rows>
void lstm_units(const LstmStep& step, int64_t begin, int64_t end, float* sums) {
  recurrent_sums<rows>(step, begin, end, sums);
  const int64_t width = step.width, units = end - begin;
  for (int64_t row = 0; row < rows; ++row) {
    const float *x = step.projected + row * 4 * width + begin, *b = step.bias + begin;
    const float* before = step.cell_before + row * width + begin;
    const float *ui = sums + row * units, *uf = ui + rows * units, *ug = uf + rows * units, *uo = ug + rows * units;
    float *gates = step.gates + row * 4 * width + begin, *cell = step.cell + row * width + begin,
          *output = step.output + row * width + begin;
#pragma omp simd
    for (int64_t k = 0; k < units; ++k) {
      const float i = sigmoid_of(x[k] + ui[k] + b[k]);
      const float f = sigmoid_of(x[width + k] + uf[k] + b[width + k]);
      const float g = tanh_of(x[2 * width + k] + ug[k] + b[2 * width + k]);
      const float o = sigmoid_of(x[3 * width + k] + uo[k] + b[3 * width + k]);
      const float next = f * before[k] + i * g;
      gates[k] = i;
      gates[width + k] = f;
      gates[2 * width + k] = g;
      gates[3 * width + k] = o;
      cell[k] = next;
      output[k] = o * tanh_of(next);
    }
  }
}

constexpr Loops loops{{lstm_units<1>, lstm_units<2>, lstm_units<3>, lstm_units<4>}};
