// A part of an LSTM's hidden units in one step; compiled per instruction set (multiversion.h).

// Processors without AVX2 have none of it: the library for inference is to be small.

#if WEFT_LANES > 4
#include "weft/cpu/native/product/dot_products.h"
#include "weft/cpu/native/support/vector_math.h"

/// sums[gate][unit - begin] of the hidden state before, times the recurrent weights.
WEFT_INLINE void recurrent_sums(const LstmStep& step, int64_t begin, int64_t end, float* sums) {
  constexpr int64_t kBeside = 4;
  const int64_t units = end - begin;
  for (int64_t gate = 0; gate < 4; ++gate) {
    float* const to = sums + gate * units - begin;
    const float* const weight = step.weight + gate * step.width * step.width;
    int64_t unit = begin;
    for (; unit + kBeside <= end; unit += kBeside)
      dot_products<1, kBeside>(step.hidden_before, weight + unit * step.width, step.width, to + unit);
    for (; unit < end; ++unit)
      dot_products<1, 1>(step.hidden_before, weight + unit * step.width, step.width, to + unit);
  }
}

void lstm_units(const LstmStep& step, int64_t begin, int64_t end, float* sums) {
  recurrent_sums(step, begin, end, sums);
  const int64_t width = step.width, units = end - begin;
  const float *x = step.projected + begin, *b = step.bias + begin, *before = step.cell_before + begin;
  const float *ui = sums, *uf = ui + units, *ug = uf + units, *uo = ug + units;
  float *gates = step.gates + begin, *cell = step.cell + begin, *output = step.output + begin;
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

constexpr Loops loops{lstm_units};
#else
constexpr Loops loops{nullptr};
#endif
