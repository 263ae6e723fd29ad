// The end of a classifier that is trained further: its softmax, and a last layer for other classes.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "weft/onnx/file/model.h"

namespace weft::onnx {

/// Makes what a softmax at the end reads the model's first output; nothing where there is none.
void drop_last_softmax(Model& model);

struct FreshLayer {
  std::set<std::string> parameters;  // by their names in the graph: these start anew
  int64_t inputs = 1;                // of the layer
};
/// Gives the last layer (a Gemm, MatMul or Conv of weights, with what is added to it) as many outputs as there are
/// classes. Nothing is fresh where it has as many already. Error(usage) where no such layer ends the model.
FreshLayer with_classes(Model& model, int64_t classes);

}  // namespace weft::onnx
