#include "weft/quantize/accuracy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "weft/base/error.h"
#include "weft/data/dataset/dataset.h"

namespace weft::quantize {

namespace {

/// What the targets that count add to.
struct Sum {
  double value = 0;
  int64_t count = 0;
};

/// A row of numbers for each target: beside one another, or over the axis behind the batch.
class ClassRows {
 public:
  ClassRows(const Tensor& output, const Tensor& targets) : output_(output) {
    const Shape &shape = output.shape(), &own = targets.shape();
    const int64_t count = targets.elements();
    if (output.dtype() != DType::f32 || shape.rank() < 2 || count == 0) return;
    std::vector<int64_t> last = own.dims(), second = own.dims();
    last.push_back(shape[shape.rank() - 1]);
    second.insert(second.begin() + 1, shape[1]);
    // Of pixels the classes are channels, be they as many as a row has pixels.
    const bool are_pixels = own.rank() == 3 && shape == Shape(second);
    if (!are_pixels && (shape[0] == count || shape == Shape(last))) {
      classes_ = output.elements() / count;
    } else if (shape == Shape(second)) {
      classes_ = shape[1];
      inner_ = count / own[0];
    }
  }
  /// 0: the output has no such rows.
  int64_t classes() const { return classes_; }
  std::vector<float> row(int64_t index) const {
    std::vector<float> numbers(static_cast<size_t>(classes_));
    const float* first = output_.data_as<float>() + index / inner_ * classes_ * inner_ + index % inner_;
    for (int64_t at = 0; at < classes_; ++at) numbers[static_cast<size_t>(at)] = first[at * inner_];
    return numbers;
  }

 private:
  const Tensor& output_;
  int64_t classes_ = 0, inner_ = 1;
};

double cross_entropy(const std::vector<float>& numbers, int32_t target) {
  const auto largest = static_cast<double>(*std::max_element(numbers.begin(), numbers.end()));
  double sum = 0;
  for (const float number : numbers) sum += std::exp(static_cast<double>(number) - largest);
  return largest + std::log(sum) - static_cast<double>(numbers[static_cast<size_t>(target)]);
}

void add_classes(Sum& sum, Criterion criterion, const ClassRows& rows, const Tensor& targets, const std::string& name) {
  for (int64_t index = 0; index < targets.elements(); ++index) {
    const int32_t target = targets.data_as<int32_t>()[index];
    if (target == data::kIgnoredTarget) continue;
    if (target < 0 || target >= rows.classes())
      fail(ErrorKind::shape, "the data have the class {}, and the output '{}' has {} alone; use the data of the model",
           target, name, rows.classes());
    const std::vector<float> numbers = rows.row(index);
    if (criterion == Criterion::perplexity)
      sum.value += cross_entropy(numbers, target);
    else if (std::max_element(numbers.begin(), numbers.end()) - numbers.begin() == target)
      sum.value += 1;
    ++sum.count;
  }
}

void add_values(Sum& sum, const Tensor& output, const Tensor& targets) {
  for (int64_t at = 0; at < targets.elements(); ++at) {
    const double difference =
        static_cast<double>(output.data_as<float>()[at]) - static_cast<double>(targets.data_as<float>()[at]);
    sum.value += difference * difference;
  }
  sum.count += targets.elements();
}

void refuse_nan(const Tensor& output, const std::string& name, int64_t batch) {
  const float* numbers = output.data_as<float>();
  if (std::any_of(numbers, numbers + output.elements(), [](float number) { return std::isnan(number); }))
    fail(ErrorKind::numeric,
         "the output '{}' has a NaN for a sample of batch {}, and nothing can be said of it; look for NaN or infinity "
         "in the samples",
         name, batch);
}

}  // namespace

std::string_view name_of(Criterion criterion) {
  if (criterion == Criterion::accuracy) return "accuracy";
  return criterion == Criterion::perplexity ? "perplexity" : "squared error";
}

double measure(const onnx::Model& model, const LabelledData& data, const Runner& runner) {
  int64_t batch = 0;
  Sum sum;
  const std::string name = model.graph.outputs.at(0).name;
  run_and_look(model, {name}, data.samples, runner, [&](const std::string&, const Tensor& output) {
    const Tensor targets = data.targets(batch);
    const bool are_values = data.criterion == Criterion::squared_error;
    const ClassRows rows(output, targets);
    if (are_values ? output.dtype() != DType::f32 || output.elements() != targets.elements() : rows.classes() == 0)
      fail(ErrorKind::shape, "the output '{}' is {}, which is no {} for each target of {}", name,
           to_string(output.type()), are_values ? "number of f32" : "row of f32", to_string(targets.type()));
    refuse_nan(output, name, batch++);
    if (are_values)
      add_values(sum, output, targets);
    else
      add_classes(sum, data.criterion, rows, targets, name);
  });
  if (sum.count == 0)
    fail(ErrorKind::data, "no target of the data counts: all are {}; measure on other data", data::kIgnoredTarget);
  const double mean = sum.value / static_cast<double>(sum.count);
  return data.criterion == Criterion::perplexity ? std::exp(mean) : mean;
}

double loss_of(Criterion criterion, double before, double after) {
  if (criterion == Criterion::accuracy) return 100 * (before - after);
  return before == 0 ? (after == 0 ? 0 : INFINITY) : 100 * (after - before) / before;
}

MixedPrecision leave_out_first(const std::vector<std::string>& by_sensitivity, double most,
                               const std::function<double(const std::set<std::string>&)>& measure) {
  const auto attempt = [&](size_t count) {
    MixedPrecision result;
    result.left_out.insert(by_sensitivity.begin(), by_sensitivity.begin() + static_cast<std::ptrdiff_t>(count));
    result.loss = measure(result.left_out);
    return result;
  };
  size_t too_few = 0, count = 1;
  MixedPrecision found;
  while (true) {
    found = attempt(count);
    if (found.loss <= most || count == by_sensitivity.size()) break;
    too_few = count;
    count = std::min(2 * count, by_sensitivity.size());
  }
  while (found.loss <= most && count - too_few > 1) {
    const size_t middle = too_few + (count - too_few) / 2;
    MixedPrecision between = attempt(middle);
    if (between.loss <= most) {
      found = std::move(between);
      count = middle;
    } else {
      too_few = middle;
    }
  }
  return found;
}

MixedPrecision leave_out_sensitive(const Quantizer& quantizer, double most,
                                   const std::function<double(const std::set<std::string>&)>& measure) {
  const double all = measure({});
  if (all <= most) return {{}, all};
  return leave_out_first(quantizer.by_sensitivity(), most, measure);
}

}  // namespace weft::quantize
