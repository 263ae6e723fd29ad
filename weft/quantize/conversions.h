// Writes a model in QDQ form: which values are integers, and with which scales, as QuantizeLinear and DequantizeLinear
// (ONNX, "Quantization operators"; the form that ONNX Runtime, TensorRT and weft compute with integers).
//
// Integers are what layers read, what they make once a relu or clip has been applied, what is added up of such, and
// what is moved or joined of them, and what a batch normalisation makes of such for a layer. The graph's inputs and
// outputs stay reals.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "weft/quantize/model_graph.h"
#include "weft/quantize/ranges.h"

namespace weft::quantize {

/// Values to be converted, each with the value whose scale it shares: itself, what it moves, or what it is joined into.
std::map<std::string, std::string> find_converted(const onnx::OnnxGraph& graph, const std::vector<Layer>& layers);
/// Of these the ones that others are joined into, whose ranges the shared scale has to hold.
std::map<std::string, std::string> joined_values(const onnx::OnnxGraph& graph,
                                                 const std::map<std::string, std::string>& converted);

/// A layer's integers. With a group (weights of few bits) the layer's input stays real.
struct QuantizedLayer {
  IntegerMatrix weights;
  int bits = 8;
  bool by_groups = false;
  bool per_channel = true;
  std::vector<float> bias;  // empty: none
};

struct Conversions {
  std::map<std::string, Scale> scales;           // of values, those of find_converted
  std::map<std::string, std::string> shared;     // find_converted
  std::map<std::string, QuantizedLayer> layers;  // by the layer's name; the others stay as they are
  bool is_signed = false;                        // activations: i8, else u8
};

/// Adds the conversions. Layers' outputs keep their names, before they are converted.
void add_conversions(onnx::Model& model, const Conversions& conversions);

}  // namespace weft::quantize
