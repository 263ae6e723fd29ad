#include "weft/train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "weft/base/error.h"
#include "weft/train/step.h"
#include "weft/train/test_time_views.h"

namespace weft::train {

namespace {

/// Errors of predicted values beside the spread of the true ones, both as the loader gives them: standardised.
class ValueErrors {
 public:
  explicit ValueErrors(const data::DatasetInfo& info)
      : statistics_(info.targets), columns_(static_cast<size_t>(info.target_shape.elements())) {}

  void add(const Tensor& squared_errors, const data::Batch& batch) {
    const auto* value = batch.targets.data_as<float>();
    for (size_t column = 0; column < columns_.size(); ++column)
      columns_[column].squared_errors += static_cast<double>(squared_errors.data_as<float>()[column]);
    for (int64_t row = 0; row < batch.count; ++row)
      for (Column& column : columns_) {
        const auto y = static_cast<double>(*value++);
        column.sum += y;
        column.squares += y * y;
      }
  }

  void finish(Evaluation& result) const {
    const auto rows = static_cast<double>(result.samples);
    double unexplained = 0, spread = 0, mean_square = 0;
    for (size_t at = 0; at < columns_.size(); ++at) {
      const Column& column = columns_[at];
      const double unit = statistics_.deviation.empty() ? 1 : statistics_.deviation[at];
      unexplained += column.squared_errors;
      spread += column.squares - column.sum * column.sum / rows;
      mean_square += unit * unit * column.squared_errors / rows / static_cast<double>(columns_.size());
    }
    result.rmse = std::sqrt(mean_square);
    if (spread > 0) result.r2 = 1 - unexplained / spread;
  }

 private:
  struct Column {
    double squared_errors = 0, sum = 0, squares = 0;
  };
  const data::TargetStatistics& statistics_;
  std::vector<Column> columns_;
};

/// Pixels of each class by prediction and label: of both, of either.
class ClassOverlaps {
 public:
  void add(const Tensor& intersections, const Tensor& unions) {
    sums_.resize(static_cast<size_t>(unions.elements()));
    for (size_t at = 0; at < sums_.size(); ++at) {
      sums_[at].of_both += static_cast<double>(intersections.data_as<float>()[at]);
      sums_[at].of_either += static_cast<double>(unions.data_as<float>()[at]);
    }
  }
  /// Over the classes that occur.
  std::optional<double> mean() const {
    double sum = 0, classes = 0;
    for (const Sum& one : sums_)
      if (one.of_either > 0) {
        sum += one.of_both / one.of_either;
        ++classes;
      }
    return classes > 0 ? std::optional(sum / classes) : std::nullopt;
  }

 private:
  struct Sum {
    double of_both = 0, of_either = 0;
  };
  std::vector<Sum> sums_;
};

}  // namespace

Evaluation evaluate(StepCache& steps, State& state, data::Loader& loader, const EvaluateOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Evaluation result;
  const data::DatasetInfo& info = loader.dataset().info();
  bool has_classes = false, has_values = false;
  ValueErrors errors(info);
  double loss_sum = 0, correct = 0, counted = 0, tokens_correct = 0;
  ClassOverlaps overlaps;
  std::optional<ViewedBatch> viewed;
  int64_t bound = -1;
  loader.start(0, 0, 1);
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    if (options.stop_requested && options.stop_requested()) {
      result.finished = false;
      return result;
    }
    const data::Batch& batch = loader.next();
    Executor& executor = steps.executor(batch.count);
    if (bound != batch.count) {
      executor.bind_state(state);
      bound = batch.count;
      const Graph& graph = steps.compiled(batch.count).graph;
      has_classes = has_output(graph, "correct");
      has_values = info.task == data::Task::regression && has_output(graph, "squared_errors");
    }
    // The first batch is the largest.
    if (step == 0 && options.tta != "none") viewed.emplace(views_of(options.tta), info, batch.count);
    bind_batch(executor, viewed ? viewed->show(batch) : batch);
    executor.run();
    loss_sum += static_cast<double>(executor.scalar_output("loss_sum"));
    if (has_classes) correct += static_cast<double>(executor.scalar_output("correct"));
    if (info.has_ignored_targets()) counted += static_cast<double>(executor.scalar_output("counted"));
    if (info.task == data::Task::translation)
      tokens_correct += static_cast<double>(executor.scalar_output("tokens_correct"));
    if (info.task == data::Task::segmentation)
      overlaps.add(executor.output("intersections"), executor.output("unions"));
    if (has_values) errors.add(executor.output("squared_errors"), batch);
    if (options.confusion != nullptr) {
      const Tensor predicted = executor.output("predicted");
      check(predicted.elements() <= batch.targets.elements(), "a prediction per target");
      const auto count = static_cast<size_t>(predicted.elements());
      options.confusion->add({batch.targets.data_as<int32_t>(), count}, {predicted.data_as<int32_t>(), count});
    }
    result.samples += batch.count;
  }
  const bool whole = info.task == data::Task::translation;  // what is right or wrong is a sequence
  const double predictions = info.has_ignored_targets()
                                 ? std::max(counted, 1.0)
                                 : static_cast<double>(result.samples * info.predictions_per_sample());
  result.loss = loss_sum / predictions;
  if (has_classes) result.accuracy = correct / (whole ? static_cast<double>(result.samples) : predictions);
  if (info.task == data::Task::segmentation) result.mean_iou = overlaps.mean();
  if (whole) result.token_accuracy = tokens_correct / predictions;
  if (has_values) errors.finish(result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace weft::train
