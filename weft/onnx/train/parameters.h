// Which tensors of an ONNX model training changes.
#pragma once

#include <set>
#include <string>

#include "weft/onnx/file/model.h"

namespace weft::onnx {

/// f16 and bf16 become f32 wherever the model has them: in tensors, inputs, outputs and casts. f64 does so where the
/// model has tensors of more than one such number; else it computes sizes, which f32 would round. Training keeps
/// weights in f32 and computes in what the recipe says.
void widen_reals(Model& model);

/// By name, of a normalised model: tensors of f32 with more than one number. A `Constant` of the file, which is not
/// among the `stored` tensors, must be the weights of a layer: others are masks, tables and factors.
std::set<std::string> find_parameters(const OnnxGraph& graph, const std::set<std::string>& stored);

/// "3 of i8, 1 of f32[]", or "none": for messages.
std::string tensors_in_words(const OnnxGraph& graph);

}  // namespace weft::onnx
