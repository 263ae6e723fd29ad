#include "weft/train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/exchange.h"
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

  template <typename Visit>
  void visit_sums(Visit visit) {
    for (Column& column : columns_) {
      visit(column.squared_errors);
      visit(column.sum);
      visit(column.squares);
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
  explicit ClassOverlaps(int64_t classes) : sums_(static_cast<size_t>(classes)) {}
  void add(const Tensor& intersections, const Tensor& unions) {
    check(unions.elements() == static_cast<int64_t>(sums_.size()), "overlaps of each class");
    for (size_t at = 0; at < sums_.size(); ++at) {
      sums_[at].of_both += static_cast<double>(intersections.data_as<float>()[at]);
      sums_[at].of_either += static_cast<double>(unions.data_as<float>()[at]);
    }
  }
  template <typename Visit>
  void visit_sums(Visit visit) {
    for (Sum& one : sums_) {
      visit(one.of_both);
      visit(one.of_either);
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

/// What batches add up to. On a rank without any all of it is 0.
struct Sums {
  explicit Sums(const data::DatasetInfo& info)
      : errors(info), overlaps(info.task == data::Task::segmentation ? info.classes : 0) {}

  /// What all ranks have summed, in the place of what this one has.
  void add_up(comm::Communicator& ranks) {
    std::vector<double> numbers;
    visit([&](double& number) { numbers.push_back(number); });
    comm::all_reduce_sum(ranks, numbers, "sums of an evaluation");
    auto sum = numbers.begin();
    visit([&](double& number) { number = *sum++; });
  }

  ValueErrors errors;
  ClassOverlaps overlaps;
  double loss_sum = 0, correct = 0, counted = 0, tokens_correct = 0, samples = 0;
  double stopped = 0, has_classes = 0, has_values = 0;  // ranks of which that is true

 private:
  template <typename Visit>
  void visit(Visit visit) {
    for (double* number :
         {&loss_sum, &correct, &counted, &tokens_correct, &samples, &stopped, &has_classes, &has_values})
      visit(*number);
    errors.visit_sums(visit);
    overlaps.visit_sums(visit);
  }
};

/// Of the batches of this rank.
Sums sum_batches(StepCache& steps, State& state, data::Loader& loader, const EvaluateOptions& options) {
  const data::DatasetInfo& info = loader.dataset().info();
  Sums sums(info);
  bool has_classes = false, has_values = false;
  std::optional<ViewedBatch> viewed;
  int64_t bound = -1;
  loader.start(0, 0, 1);
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    if (options.stop_requested && options.stop_requested()) {
      sums.stopped = 1;
      return sums;
    }
    const data::Batch& batch = loader.next();
    if (batch.count == 0) continue;
    Executor& executor = steps.executor(batch.count);
    if (bound != batch.count) {
      executor.bind_state(state);
      bound = batch.count;
      const Graph& graph = steps.compiled(batch.count).graph;
      has_classes = has_output(graph, "correct");
      has_values = info.task == data::Task::regression && has_output(graph, "squared_errors");
      sums.has_classes = has_classes ? 1 : 0;
      sums.has_values = has_values ? 1 : 0;
    }
    if (!viewed && options.tta != "none")
      viewed.emplace(views_of(options.tta), info, std::min(batch.samples.shape()[0], loader.dataset().size()));
    bind_batch(executor, viewed ? viewed->show(batch) : batch);
    executor.run();
    sums.loss_sum += static_cast<double>(executor.scalar_output("loss_sum"));
    if (has_classes) sums.correct += static_cast<double>(executor.scalar_output("correct"));
    if (info.has_ignored_targets()) sums.counted += static_cast<double>(executor.scalar_output("counted"));
    if (info.task == data::Task::translation)
      sums.tokens_correct += static_cast<double>(executor.scalar_output("tokens_correct"));
    if (info.task == data::Task::segmentation)
      sums.overlaps.add(executor.output("intersections"), executor.output("unions"));
    if (has_values) sums.errors.add(executor.output("squared_errors"), batch);
    if (options.confusion != nullptr) {
      const Tensor predicted = executor.output("predicted");
      check(predicted.elements() <= batch.targets.elements(), "a prediction per target");
      const auto count = static_cast<size_t>(predicted.elements());
      options.confusion->add({batch.targets.data_as<int32_t>(), count}, {predicted.data_as<int32_t>(), count});
    }
    sums.samples += static_cast<double>(batch.count);
  }
  return sums;
}

}  // namespace

Evaluation evaluate(StepCache& steps, State& state, data::Loader& loader, const EvaluateOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const data::DatasetInfo& info = loader.dataset().info();
  check(options.ranks == nullptr || options.confusion == nullptr, "one process counts confusions");
  Sums sums = sum_batches(steps, state, loader, options);
  if (options.ranks != nullptr) sums.add_up(*options.ranks);
  Evaluation result;
  result.samples = static_cast<int64_t>(sums.samples);
  result.finished = sums.stopped == 0;
  if (!result.finished) return result;
  const bool whole = info.task == data::Task::translation;  // what is right or wrong is a sequence
  const double predictions = info.has_ignored_targets()
                                 ? std::max(sums.counted, 1.0)
                                 : static_cast<double>(result.samples * info.predictions_per_sample());
  result.loss = sums.loss_sum / predictions;
  if (sums.has_classes > 0) result.accuracy = sums.correct / (whole ? sums.samples : predictions);
  if (info.task == data::Task::segmentation) result.mean_iou = sums.overlaps.mean();
  if (whole) result.token_accuracy = sums.tokens_correct / predictions;
  if (sums.has_values > 0) sums.errors.finish(result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace weft::train
