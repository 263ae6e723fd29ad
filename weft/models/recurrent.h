// Stacks of recurrent layers with PyTorch's names and starting values (nn.LSTM, nn.GRU), shared by the models.
#pragma once

#include <string>

#include "weft/models/builder.h"

namespace weft::models {

struct RecurrentLayers {
  std::string cell = "lstm";  // or "gru"
  int64_t layers = 1, width = 128;
  bool bidirectional = false;
  double dropout = 0;  // of the results of all layers but the last
  // [N,width], of every layer and direction; invalid: zeros.
  ValueId initial_hidden{}, initial_cell{};
};

struct RecurrentStates {
  ValueId output;  // [T,N,D width], D = 2 where bidirectional: forward, then backward
  // After the last step of each direction of the last layer: [N,D width]. The cell is invalid for "gru".
  ValueId hidden{}, cell{};
};

/// x [T,N,C]. NAME.weight_ih_l0, .weight_hh_l0, .bias_ih_l0, .bias_hh_l0, _l1.., and the same with "_reverse".
RecurrentStates recurrent(ModelBuilder& m, ValueId x, const std::string& name, const RecurrentLayers& layers);

}  // namespace weft::models
