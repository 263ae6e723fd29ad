// Runs a model on calibration samples and looks at what flows between its nodes.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weft/device/device.h"
#include "weft/onnx/file/model.h"
#include "weft/quantize/model_graph.h"
#include "weft/quantize/ranges.h"
#include "weft/quantize/second_moments.h"

namespace weft::quantize {

/// Samples in batches, each as the model's input wants it; the last may be smaller.
struct CalibrationData {
  int64_t batches = 0;
  std::function<Tensor(int64_t batch)> batch;
};

/// Where models run. `on_batch` is told of each batch that has run; may be empty.
struct Runner {
  const OpRegistry& ops;
  const Device& device;
  std::function<void()> on_batch = {};
  DType precision = DType::f32;  // of convolutions and matrix products of reals
};

/// Values for the model's inputs: what the data feed, and masks, token types and positions as training fills them.
/// Error(usage) where the data would have to feed several.
std::map<std::string, onnx::HostValue> inputs_for(const onnx::Model& model, const Tensor& samples);

/// Calls look(name, tensor) with these values of every batch. Error(usage) as inputs_for().
void run_and_look(const onnx::Model& model, const std::set<std::string>& values, const CalibrationData& data,
                  const Runner& runner, const std::function<void(const std::string&, const Tensor&)>& look);

/// Two passes over the data: ranges, then counts. Error(data) for a NaN, and for values that are not f32.
std::map<std::string, Histogram> observe(const onnx::Model& model, const std::set<std::string>& values,
                                         const CalibrationData& data, const Runner& runner);

/// The inputs that each row of a layer's weights is multiplied by, for each group of a convolution: at most
/// `most_samples` of them, spread evenly over the batches and positions. Layers of more than `most_inputs` inputs get
/// means alone. Error(data) for a NaN or infinity, and for values that are not f32.
std::map<std::string, std::vector<SecondMoments>> observe_inputs(const onnx::Model& model,
                                                                 const std::vector<Layer>& layers,
                                                                 const CalibrationData& data, const Runner& runner,
                                                                 int64_t most_samples, int64_t most_inputs);

}  // namespace weft::quantize
