// How often a model's largest output is the class of the sample, and which layers to leave in f32 so that quantization
// costs no more of that than it may.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "weft/quantize/quantizer.h"

namespace weft::quantize {

struct LabelledData {
  CalibrationData samples;
  std::function<std::vector<int32_t>(int64_t batch)> labels;  // of its samples, in their order
};

/// The share of the samples, by the model's first output [N,classes]. Error(shape) where it is no such,
/// Error(numeric) where it is NaN.
double accuracy(const onnx::Model& model, const LabelledData& data, const Runner& runner);

struct MixedPrecision {
  std::set<std::string> left_out;  // layers in f32
  double accuracy = 0;             // of the quantized model then
};

/// Leaves out layers, the most sensitive first, until the accuracy is at least `least`: none, one, and so on, doubling;
/// then as few of them as will do. `measure` gives the accuracy without these layers.
MixedPrecision leave_out_sensitive(const Quantizer& quantizer, double least,
                                   const std::function<double(const std::set<std::string>&)>& measure);
/// The same over any list, for tests.
MixedPrecision leave_out_first(const std::vector<std::string>& by_sensitivity, double least,
                               const std::function<double(const std::set<std::string>&)>& measure);

}  // namespace weft::quantize
