// How well a model does what it is for, and which layers to leave in f32 so that quantization costs no more of that
// than it may.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/quantize/quantizer.h"

namespace weft::quantize {

/// What is measured.
enum class Criterion {
  accuracy,       // how often the largest output is the class
  perplexity,     // exp of the mean cross-entropy of tokens
  squared_error,  // the mean over all values
};

/// "accuracy", "perplexity" or "squared error"
std::string_view name_of(Criterion criterion);

struct LabelledData {
  CalibrationData samples;
  std::function<Tensor(int64_t batch)> targets;  // of its samples, in their order: i32 of classes and tokens, else f32
  Criterion criterion = Criterion::accuracy;
};

/// By the model's first output: a row of classes for each target, as [N,..,C] or [N,C,..], or a number for each.
/// Targets of data::kIgnoredTarget do not count. Error(shape) where the output is no such, Error(numeric) where it is
/// NaN.
double measure(const onnx::Model& model, const LabelledData& data, const Runner& runner);

/// How much worse `after` is than `before`: an accuracy in points, others in per cent of `before`. Below 0: better.
double loss_of(Criterion criterion, double before, double after);

struct MixedPrecision {
  std::set<std::string> left_out;  // layers in f32
  double loss = 0;                 // of the quantized model then
};

/// Leaves out layers, the most sensitive first, until the loss is at most `most`: none, one, and so on, doubling; then
/// as few of them as will do. `measure` gives the loss without these layers.
MixedPrecision leave_out_sensitive(const Quantizer& quantizer, double most,
                                   const std::function<double(const std::set<std::string>&)>& measure);
/// The same over any list, for tests.
MixedPrecision leave_out_first(const std::vector<std::string>& by_sensitivity, double most,
                               const std::function<double(const std::set<std::string>&)>& measure);

}  // namespace weft::quantize
