#include "weft/train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/exchange.h"
#include "weft/comm/patience.h"
#include "weft/program/driver.h"
#include "weft/step/step.h"
#include "weft/step/test_time_views.h"
#include "weft/step/virtual_ranks.h"

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

  std::vector<double> numbers() {
    std::vector<double> all;
    visit([&](double& number) { all.push_back(number); });
    return all;
  }
  void set_numbers(const std::vector<double>& numbers) {
    auto next = numbers.begin();
    visit([&](double& number) { number = *next++; });
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

/// The batches of this process with what each of its shards makes of them.
class Shards {
 public:
  Shards(program::Program& program, State& state, const data::Loader& loader, const EvaluateOptions& options)
      : driver_(program, state),
        info_(loader.dataset().info()),
        options_(options),
        samples_(loader.dataset().size()),
        processes_(options.ranks == nullptr ? 1 : options.ranks->size()),
        sums_(static_cast<size_t>(std::max<int64_t>(1, options.virtual_ranks / processes_)), Sums(info_)) {}

  /// `total`: samples of the batch of all processes.
  void add(const data::Batch& batch, int64_t total) {
    if (options_.virtual_ranks == 0) return add(batch, sums_.front());
    int64_t begin = 0;
    const std::vector<int64_t> rows = step::rows_of_shards(total, options_.virtual_ranks, options_.place, processes_);
    for (size_t shard = 0; shard < rows.size(); begin += rows[shard++])
      if (rows[shard] > 0) add(take_rows(batch, begin, rows[shard]), sums_[shard]);
  }
  void stop() { sums_.front().stopped = 1; }

  /// Of all shards of all processes, in the order of the tree over the shards.
  Sums add_up() {
    if (options_.virtual_ranks == 0) {
      std::vector<double> numbers = sums_.front().numbers();
      if (options_.ranks != nullptr) comm::all_reduce_sum(*options_.ranks, numbers, "sums of an evaluation");
      sums_.front().set_numbers(numbers);
      return sums_.front();
    }
    const size_t count = sums_.front().numbers().size();
    std::vector<double> all(count * static_cast<size_t>(options_.virtual_ranks));
    for (size_t shard = 0; shard < sums_.size(); ++shard) {
      const std::vector<double> own = sums_[shard].numbers();
      const size_t at = static_cast<size_t>(options_.place) * sums_.size() + shard;
      std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(at * count));
    }
    // Each number is 0 on all processes but one: whatever the order, nothing is rounded.
    if (options_.ranks != nullptr) comm::all_reduce_sum(*options_.ranks, all, "sums of an evaluation");
    for (size_t width = all.size() / 2; width >= count; width /= 2)  // neighbours first
      for (size_t at = 0; at < width; ++at) {
        const size_t pair = at / count * 2 * count + at % count;
        all[at] = all[pair] + all[pair + count];
      }
    all.resize(count);
    sums_.front().set_numbers(all);
    return sums_.front();
  }

 private:
  void add(const data::Batch& batch, Sums& sums) {
    if (batch.count == 0) return;
    if (driver_.shape() != spec::StepShape(batch.count)) {
      driver_.select(batch.count);
      has_classes_ = driver_.has_output("correct");
      has_values_ = info_.task == data::Task::regression && driver_.has_output("squared_errors");
    }
    const Executor& executor = driver_.executor();
    sums.has_classes = has_classes_ ? 1 : 0;
    sums.has_values = has_values_ ? 1 : 0;
    if (!viewed_ && options_.tta != "none")
      viewed_.emplace(data::views_of(options_.tta), info_, std::min(batch.samples.shape()[0], samples_));
    driver_.bind_batch(viewed_ ? viewed_->show(batch) : batch);
    driver_.run();
    sums.loss_sum += static_cast<double>(executor.scalar_output("loss_sum"));
    if (has_classes_) sums.correct += static_cast<double>(executor.scalar_output("correct"));
    if (info_.has_ignored_targets()) sums.counted += static_cast<double>(executor.scalar_output("counted"));
    if (info_.task == data::Task::translation)
      sums.tokens_correct += static_cast<double>(executor.scalar_output("tokens_correct"));
    if (info_.task == data::Task::segmentation)
      sums.overlaps.add(executor.output("intersections"), executor.output("unions"));
    if (has_values_) sums.errors.add(executor.output("squared_errors"), batch);
    if (options_.confusion != nullptr) {
      const Tensor predicted = executor.output("predicted");
      check(predicted.elements() <= batch.targets.elements(), "a prediction per target");
      const auto count = static_cast<size_t>(predicted.elements());
      options_.confusion->add({batch.targets.data_as<int32_t>(), count}, {predicted.data_as<int32_t>(), count});
    }
    sums.samples += static_cast<double>(batch.count);
  }

  /// A batch of its own, which the next call writes over.
  const data::Batch& take_rows(const data::Batch& batch, int64_t begin, int64_t count) {
    const auto take = [&](const Tensor& from, Tensor& to) {
      const int64_t rows = from.shape()[0], row_bytes = from.bytes() / rows;
      if (to.empty()) to = Tensor(from.type());
      std::memcpy(to.data(), from.data_as<std::byte>() + begin * row_bytes, static_cast<size_t>(count * row_bytes));
    };
    take(batch.samples, rows_.samples);
    take(batch.targets, rows_.targets);
    rows_.count = count;
    return rows_;
  }

  program::Driver driver_;
  const data::DatasetInfo& info_;
  const EvaluateOptions& options_;
  const int64_t samples_;  // of the whole data
  const int processes_;
  std::vector<Sums> sums_;
  std::optional<step::ViewedBatch> viewed_;
  bool has_classes_ = false, has_values_ = false;
  data::Batch rows_;
};

}  // namespace

Evaluation evaluate(program::Program& program, State& state, data::Loader& loader, const EvaluateOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const data::DatasetInfo& info = loader.dataset().info();
  check(options.ranks == nullptr || options.confusion == nullptr, "one process counts confusions");
  Shards shards(program, state, loader, options);
  loader.start(0, 0, 1);
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    if (options.stop_requested && options.stop_requested()) {
      shards.stop();
      break;
    }
    if (options.ranks != nullptr)
      comm::require_signs_of_life(*options.ranks, comm::WaitLimits{}.silence_seconds, {"evaluation", {}, {}});
    shards.add(loader.next(), std::min(options.batch, loader.dataset().size() - step * options.batch));
  }
  const Sums sums = shards.add_up();
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
