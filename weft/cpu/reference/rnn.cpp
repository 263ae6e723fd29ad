// The recurrences of LSTM and GRU layers and their gradients, cell by cell.
#include <algorithm>
#include <cmath>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// A walk over the steps of one layer.
struct Walk {
  int64_t steps, batch, width;
  bool reverse;

  Walk(const Shape& states, const NodeSignature& node)
      : steps(states[0]), batch(states[1]), width(states[2]), reverse(node.attributes.boolean("reverse")) {}
  /// The position in time of the walk's step.
  int64_t time(int64_t step) const { return reverse ? steps - 1 - step : step; }
  /// Row n of the states [T,N,H] that the step starts from: those of the step before, or the initial ones.
  const float* before(int64_t step, int64_t n, const float* states, const float* initial) const {
    return step == 0 ? initial + n * width : states + (time(step - 1) * batch + n) * width;
  }
};

/// Row `row` of the weights [rows,H] times a hidden state.
double product(const float* weight, int64_t row, const float* hidden, int64_t width) {
  double sum = 0;
  for (int64_t k = 0; k < width; ++k)
    sum += static_cast<double>(weight[row * width + k]) * static_cast<double>(hidden[k]);
  return sum;
}

/// What the gates' gradients [rows] pass on to element k of the hidden state before.
double passed_on(const float* weight, const float* gradient, int64_t rows, int64_t k, int64_t width) {
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row)
    sum += static_cast<double>(gradient[row]) * static_cast<double>(weight[row * width + k]);
  return sum;
}

Body prepare_lstm(const NodeSignature& node) {
  const Walk walk(node.outputs[0].shape, node);
  return [walk](const KernelArguments& call) {
    const int64_t width = walk.width;
    for (int64_t step = 0; step < walk.steps; ++step)
      for (int64_t n = 0; n < walk.batch; ++n) {
        const int64_t row = walk.time(step) * walk.batch + n;
        const float* hidden = walk.before(step, n, output(call, 0), input(call, 3));
        const float* cell = walk.before(step, n, output(call, 1), input(call, 4));
        float* gates = output(call, 2) + row * 4 * width;
        for (int64_t k = 0; k < width; ++k) {
          const auto entering = [&](int64_t gate) {
            const int64_t r = gate * width + k;
            return static_cast<double>(input(call, 0)[row * 4 * width + r]) + static_cast<double>(input(call, 2)[r]) +
                   product(input(call, 1), r, hidden, width);
          };
          const double i = sigmoid(entering(0)), f = sigmoid(entering(1)), g = std::tanh(entering(2)),
                       o = sigmoid(entering(3));
          const double next = f * static_cast<double>(cell[k]) + i * g;
          output(call, 0)[row * width + k] = static_cast<float>(o * std::tanh(next));
          output(call, 1)[row * width + k] = static_cast<float>(next);
          gates[k] = static_cast<float>(i);
          gates[width + k] = static_cast<float>(f);
          gates[2 * width + k] = static_cast<float>(g);
          gates[3 * width + k] = static_cast<float>(o);
        }
      }
  };
}

Body prepare_lstm_backward(const NodeSignature& node) {
  const Walk walk(node.inputs[0].shape, node);
  const bool with_cells = node.inputs.size() > 5;
  return [walk, with_cells](const KernelArguments& call) {
    const int64_t width = walk.width, states = walk.batch * width;
    // What the later steps pass back; at the end the gradients of the initial state.
    float *hidden_gradient = output(call, 1), *cell_gradient = output(call, 2);
    std::fill_n(hidden_gradient, states, 0.0f);
    std::fill_n(cell_gradient, states, 0.0f);
    for (int64_t step = walk.steps - 1; step >= 0; --step)
      for (int64_t n = 0; n < walk.batch; ++n) {
        const int64_t row = walk.time(step) * walk.batch + n;
        const float* cell = walk.before(step, n, input(call, 3), input(call, 2));
        const float* gates = input(call, 4) + row * 4 * width;
        float* gradient = output(call, 0) + row * 4 * width;
        for (int64_t k = 0; k < width; ++k) {
          const auto gate = [&](int64_t which) { return static_cast<double>(gates[which * width + k]); };
          const double i = gate(0), f = gate(1), g = gate(2), o = gate(3);
          const int64_t at = row * width + k, state = n * width + k;
          const double squashed = std::tanh(static_cast<double>(input(call, 3)[at]));
          const double dh = static_cast<double>(input(call, 0)[at]) + static_cast<double>(hidden_gradient[state]);
          double dc = static_cast<double>(cell_gradient[state]) + dh * o * (1 - squashed * squashed);
          if (with_cells) dc += static_cast<double>(input(call, 5)[at]);
          gradient[k] = static_cast<float>(dc * g * i * (1 - i));
          gradient[width + k] = static_cast<float>(dc * static_cast<double>(cell[k]) * f * (1 - f));
          gradient[2 * width + k] = static_cast<float>(dc * i * (1 - g * g));
          gradient[3 * width + k] = static_cast<float>(dh * squashed * o * (1 - o));
          cell_gradient[state] = static_cast<float>(dc * f);
        }
        for (int64_t k = 0; k < width; ++k)
          hidden_gradient[n * width + k] = static_cast<float>(passed_on(input(call, 1), gradient, 4 * width, k, width));
      }
  };
}

Body prepare_gru(const NodeSignature& node) {
  const Walk walk(node.outputs[0].shape, node);
  return [walk](const KernelArguments& call) {
    const int64_t width = walk.width;
    for (int64_t step = 0; step < walk.steps; ++step)
      for (int64_t n = 0; n < walk.batch; ++n) {
        const int64_t row = walk.time(step) * walk.batch + n;
        const float* hidden = walk.before(step, n, output(call, 0), input(call, 4));
        float* gates = output(call, 1) + row * 4 * width;
        for (int64_t k = 0; k < width; ++k) {
          const auto x = [&](int64_t gate) {
            const int64_t r = gate * width + k;
            return static_cast<double>(input(call, 0)[row * 3 * width + r]) + static_cast<double>(input(call, 2)[r]);
          };
          const auto u = [&](int64_t gate) {
            const int64_t r = gate * width + k;
            return static_cast<double>(input(call, 3)[r]) + product(input(call, 1), r, hidden, width);
          };
          const double r = sigmoid(x(0) + u(0)), z = sigmoid(x(1) + u(1)), un = u(2), n_gate = std::tanh(x(2) + r * un);
          output(call, 0)[row * width + k] = static_cast<float>((1 - z) * n_gate + z * static_cast<double>(hidden[k]));
          gates[k] = static_cast<float>(r);
          gates[width + k] = static_cast<float>(z);
          gates[2 * width + k] = static_cast<float>(n_gate);
          gates[3 * width + k] = static_cast<float>(un);
        }
      }
  };
}

Body prepare_gru_backward(const NodeSignature& node) {
  const Walk walk(node.inputs[0].shape, node);
  return [walk](const KernelArguments& call) {
    const int64_t width = walk.width;
    float* hidden_gradient = output(call, 2);
    std::fill_n(hidden_gradient, walk.batch * width, 0.0f);
    for (int64_t step = walk.steps - 1; step >= 0; --step)
      for (int64_t n = 0; n < walk.batch; ++n) {
        const int64_t row = walk.time(step) * walk.batch + n;
        const float* hidden = walk.before(step, n, input(call, 3), input(call, 2));
        const float* gates = input(call, 4) + row * 4 * width;
        float* projected = output(call, 0) + row * 3 * width;
        float* recurrent = output(call, 1) + row * 3 * width;
        for (int64_t k = 0; k < width; ++k) {
          const auto gate = [&](int64_t which) { return static_cast<double>(gates[which * width + k]); };
          const double r = gate(0), z = gate(1), n_gate = gate(2), un = gate(3);
          float& carried = hidden_gradient[n * width + k];
          const double dh = static_cast<double>(input(call, 0)[row * width + k]) + static_cast<double>(carried);
          const double dn = dh * (1 - z) * (1 - n_gate * n_gate);
          projected[k] = recurrent[k] = static_cast<float>(dn * un * r * (1 - r));
          projected[width + k] = recurrent[width + k] =
              static_cast<float>(dh * (static_cast<double>(hidden[k]) - n_gate) * z * (1 - z));
          projected[2 * width + k] = static_cast<float>(dn);
          recurrent[2 * width + k] = static_cast<float>(dn * r);
          carried = static_cast<float>(dh * z);
        }
        for (int64_t k = 0; k < width; ++k)
          hidden_gradient[n * width + k] +=
              static_cast<float>(passed_on(input(call, 1), recurrent, 3 * width, k, width));
      }
  };
}

}  // namespace

void add_rnn(KernelTable& table) {
  add_plain(table, "lstm", prepare_lstm);
  add_plain(table, "lstm_backward", prepare_lstm_backward);
  add_plain(table, "gru", prepare_gru);
  add_plain(table, "gru_backward", prepare_gru_backward);
}

}  // namespace weft::reference
