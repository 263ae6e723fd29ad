#include "weft/quantize/accuracy.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft::quantize {

double accuracy(const onnx::Model& model, const LabelledData& data, const Runner& runner) {
  int64_t batch = 0, right = 0, all = 0;
  const std::string output = model.graph.outputs.at(0).name;
  run_and_look(model, {output}, data.samples, runner, [&](const std::string&, const Tensor& logits) {
    const std::vector<int32_t> labels = data.labels(batch++);
    const auto rows = static_cast<int64_t>(labels.size());
    if (logits.dtype() != DType::f32 || logits.shape().rank() < 2 || logits.shape()[0] != rows || rows == 0)
      fail(ErrorKind::shape, "the output '{}' is {}; the accuracy of classes wants f32 [{},classes]", output,
           to_string(logits.type()), rows);
    const int64_t classes = logits.elements() / rows;
    for (int64_t row = 0; row < rows; ++row) {
      const float* numbers = logits.data_as<float>() + row * classes;
      const auto largest = std::max_element(numbers, numbers + classes) - numbers;
      if (std::isnan(numbers[largest]))
        fail(ErrorKind::numeric,
             "the output '{}' begins with a NaN for a sample of batch {}, which is no class; look for NaN or infinity "
             "in "
             "the samples",
             output, batch - 1);
      right += largest == labels[static_cast<size_t>(row)] ? 1 : 0;
    }
    all += rows;
  });
  return all == 0 ? 0 : static_cast<double>(right) / static_cast<double>(all);
}

MixedPrecision leave_out_first(const std::vector<std::string>& by_sensitivity, double least,
                               const std::function<double(const std::set<std::string>&)>& measure) {
  const auto attempt = [&](size_t count) {
    MixedPrecision result;
    result.left_out.insert(by_sensitivity.begin(), by_sensitivity.begin() + static_cast<std::ptrdiff_t>(count));
    result.accuracy = measure(result.left_out);
    return result;
  };
  size_t too_few = 0, count = 1;
  MixedPrecision found;
  while (true) {
    found = attempt(count);
    if (found.accuracy >= least || count == by_sensitivity.size()) break;
    too_few = count;
    count = std::min(2 * count, by_sensitivity.size());
  }
  while (found.accuracy >= least && count - too_few > 1) {
    const size_t middle = too_few + (count - too_few) / 2;
    MixedPrecision between = attempt(middle);
    if (between.accuracy >= least) {
      found = std::move(between);
      count = middle;
    } else {
      too_few = middle;
    }
  }
  return found;
}

MixedPrecision leave_out_sensitive(const Quantizer& quantizer, double least,
                                   const std::function<double(const std::set<std::string>&)>& measure) {
  const double all = measure({});
  if (all >= least) return {{}, all};
  return leave_out_first(quantizer.by_sensitivity(), least, measure);
}

}  // namespace weft::quantize
