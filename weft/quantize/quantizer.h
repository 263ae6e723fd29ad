// Post-training quantization of a model of f32 in ONNX's form, without training: prepares it, calibrates it, rounds its
// weights, and writes it in QDQ form with any of its layers left as they are.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "weft/quantize/calibrate.h"
#include "weft/quantize/conversions.h"

namespace weft::quantize {

enum class WeightRounding { nearest, adaptive };

struct QuantizerOptions {
  Calibration calibration = Calibration::mse;
  bool per_channel = true;
  bool symmetric = false;  // activations too
  bool equalizes = false;  // cross-layer equalisation first
  bool corrects_bias = true;
  WeightRounding rounding = WeightRounding::nearest;
  int bits = 8;        // of weights, 8 or 7; 4 and 2: of matrix products' weights, by groups; convolutions keep 8
  int64_t group = 32;  // inputs that share a scale then
  bool by_groups() const { return bits < 7; }
};

/// How far a layer's output is from that of the f32 model.
struct LayerError {
  std::string name;
  int bits = 8;  // of its weights; 32: it was left as it is
  int64_t weights = 0;
  double signal_to_noise = 0;  // in decibels
};

class Quantizer {
 public:
  /// Calibrates at once. Keeps references to runner and data. Error(usage) where the model has no layer to quantize, or
  /// operators that its version's successor with such integers reads otherwise; Error(data) for weights and samples
  /// with NaN or infinity.
  Quantizer(onnx::Model model, const QuantizerOptions& options, const CalibrationData& data, const Runner& runner);

  const std::vector<Layer>& layers() const { return layers_; }
  /// The model after folding and equalisation: it computes the same in f32.
  const onnx::Model& folded() const { return folded_; }
  /// With these layers left in f32.
  onnx::Model quantized(const std::set<std::string>& left_out = {}) const;

  /// Of each layer of a quantized model, on the first batch of the data.
  std::vector<LayerError> layer_errors(const std::set<std::string>& left_out) const;
  /// Layers by how much the model's outputs change where one alone is quantized, the worst first.
  std::vector<std::string> by_sensitivity() const;

 private:
  void prepare_version();
  void equalize();
  void make_room_for_bias(const Layer& layer, IntegerMatrix& quantized) const;
  void round_weights();
  int bits_of(bool by_groups) const { return by_groups || !options_.by_groups() ? options_.bits : 8; }
  IntegerMatrix rounded(const Layer& layer, const Matrix& weights, bool by_groups) const;
  double output_change(const onnx::Model& quantized) const;
  CalibrationData first_batch() const { return {std::min<int64_t>(1, data_.batches), data_.batch}; }

  onnx::Model folded_;
  const QuantizerOptions options_;
  const CalibrationData& data_;
  const Runner& runner_;
  std::vector<Layer> layers_;
  std::map<std::string, std::vector<SecondMoments>> inputs_;  // by layer
  Conversions conversions_;                                   // with all layers
};

/// Pairs of layers between which nothing but a relu stands, each read by nobody else: what equalisation scales.
std::vector<std::pair<size_t, size_t>> find_equalizable(const onnx::OnnxGraph& graph, const std::vector<Layer>& layers);

}  // namespace weft::quantize
