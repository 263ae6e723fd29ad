// The nodes that benchmarks/kernels.cpp times: ops that are bound by memory, on tensors of the sizes of ResNet-50, of
// MobileNet-v2 and of a small transformer.
#pragma once

#include <string>
#include <vector>

#include "weft/graph/attributes.h"
#include "weft/tensor/tensor.h"

namespace weft::benchmarks {

struct Row {
  std::string op;
  std::vector<TensorType> inputs, outputs;
  Attributes attributes = {};
  std::vector<size_t> in_place_of = {};  // output i is input in_place_of[i]; empty: none is
};

/// With images and what else follows the precision of a step in `images`, f32 or bf16.
std::vector<Row> kernel_rows(DType images);

}  // namespace weft::benchmarks
