#include "weft/models/recurrent.h"

#include <fmt/format.h>

#include <cmath>

namespace weft::models {
namespace {

/// One layer in one direction.
RecurrentStates direction(ModelBuilder& m, ValueId x, const std::string& name, const std::string& suffix,
                          const RecurrentLayers& s, bool reverse) {
  const bool is_lstm = s.cell == "lstm";
  const int64_t rows = (is_lstm ? 4 : 3) * s.width, columns = m.shape(x)[2];
  const Initializer start{Initializer::Kind::uniform, 1 / std::sqrt(static_cast<double>(s.width))};
  ops::RecurrentWeights weights{};
  weights.input = m.parameter(fmt::format("{}.weight_ih_{}", name, suffix), {rows, columns}, start, true);
  weights.recurrent = m.parameter(fmt::format("{}.weight_hh_{}", name, suffix), {rows, s.width}, start, true);
  weights.input_bias = m.parameter(fmt::format("{}.bias_ih_{}", name, suffix), {rows}, start, false);
  weights.recurrent_bias = m.parameter(fmt::format("{}.bias_hh_{}", name, suffix), {rows}, start, false);
  const std::string hint = fmt::format("{}.{}", name, suffix);
  if (is_lstm) {
    const ops::LstmResult result = ops::lstm(m.graph(), x, weights, s.initial_hidden, s.initial_cell, reverse, hint);
    return {result.output, result.hidden, result.cell};
  }
  const ops::GruResult result = ops::gru(m.graph(), x, weights, s.initial_hidden, reverse, hint);
  return {result.output, result.hidden, {}};
}

}  // namespace

RecurrentStates recurrent(ModelBuilder& m, ValueId x, const std::string& name, const RecurrentLayers& s) {
  Graph& graph = m.graph();
  RecurrentStates states{x, {}, {}};
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string suffix = fmt::format("l{}", layer);
    if (layer > 0) states.output = m.dropout(states.output, s.dropout, fmt::format("{}.dropout{}", name, layer - 1));
    const ValueId input = states.output;
    states = direction(m, input, name, suffix, s, false);
    if (!s.bidirectional) continue;
    const RecurrentStates back = direction(m, input, name, suffix + "_reverse", s, true);
    const std::string hint = fmt::format("{}.{}.both", name, suffix);
    states.output = ops::concat(graph, {states.output, back.output}, 2, hint);
    states.hidden = ops::concat(graph, {states.hidden, back.hidden}, 1, hint + ".hidden");
    if (states.cell.valid()) states.cell = ops::concat(graph, {states.cell, back.cell}, 1, hint + ".cell");
  }
  return states;
}

}  // namespace weft::models
