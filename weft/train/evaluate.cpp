#include "weft/train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/exchange.h"
#include "weft/comm/patience.h"
#include "weft/program/driver.h"
#include "weft/step/test_time_views.h"
#include "weft/step/virtual_ranks.h"

namespace weft::train {

namespace {

/// What batches add up to. On a rank without any all of it is 0.
struct Sums {
  Sums(const data::DatasetInfo& info, const std::vector<MetricEntry>& metrics) : of_metrics(metrics.size()) {
    for (size_t at = 0; at < metrics.size(); ++at)
      of_metrics[at].sums.resize(static_cast<size_t>(metrics[at].sum_count(info)));
  }

  std::vector<double> numbers() {
    std::vector<double> all;
    visit([&](double& number) { all.push_back(number); });
    return all;
  }
  void set_numbers(const std::vector<double>& numbers) {
    auto next = numbers.begin();
    visit([&](double& number) { number = *next++; });
  }

  struct OfMetric {
    double measured = 0;  // ranks whose steps have it
    std::vector<double> sums;
  };
  double loss_sum = 0, counted = 0, samples = 0;
  double stopped = 0;  // ranks of which that is true
  std::vector<OfMetric> of_metrics;

 private:
  template <typename Visit>
  void visit(Visit visit) {
    for (double* number : {&loss_sum, &counted, &samples, &stopped}) visit(*number);
    for (OfMetric& metric : of_metrics) {
      visit(metric.measured);
      for (double& number : metric.sums) visit(number);
    }
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
        sums_(static_cast<size_t>(std::max<int64_t>(1, options.virtual_ranks / processes_)),
              Sums(info_, options.metrics)),
        is_measured_(options.metrics.size()) {}

  /// `total`: samples of the batch of all processes.
  void add(const data::Batch& batch, int64_t total) {
    if (options_.virtual_ranks == 0) return add(batch, sums_.front());
    int64_t begin = 0;
    const std::vector<int64_t> rows = step::rows_of_shards(total, options_.virtual_ranks, options_.place, processes_);
    for (size_t shard = 0; shard < rows.size(); begin += rows[shard++])
      if (rows[shard] > 0)
        add(take_rows(batch, begin, rows[shard]), sums_[shard]);
      else if (options_.gathers_weights)
        run_without_rows(batch);
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
    if (batch.count == 0) return options_.gathers_weights ? run_without_rows(batch) : void();
    run(batch);
    const Executor& executor = driver_.executor();
    sums.loss_sum += static_cast<double>(executor.scalar_output("loss_sum"));
    if (info_.has_ignored_targets()) sums.counted += static_cast<double>(executor.scalar_output("counted"));
    const MetricBatch seen{[&](const std::string& name) { return executor.output(name); }, batch, info_};
    for (size_t at = 0; at < is_measured_.size(); ++at) {
      if (!is_measured_[at]) continue;
      const MetricEntry& metric = options_.metrics[at];
      sums.of_metrics[at].measured = 1;
      if (metric.add)
        metric.add(seen, sums.of_metrics[at].sums);
      else if (!metric.outputs.empty())
        sums.of_metrics[at].sums[0] += static_cast<double>(executor.scalar_output(metric.outputs.front()));
    }
    if (options_.confusion != nullptr) {
      const Tensor predicted = executor.output("predicted");
      check(predicted.elements() <= batch.targets.elements(), "a prediction per target");
      const auto count = static_cast<size_t>(predicted.elements());
      options_.confusion->add({batch.targets.data_as<int32_t>(), count}, {predicted.data_as<int32_t>(), count});
    }
    sums.samples += static_cast<double>(batch.count);
  }

  void run(const data::Batch& batch) {
    if (driver_.shape() != spec::StepShape(batch.count)) {
      driver_.select(batch.count);
      for (size_t at = 0; at < is_measured_.size(); ++at) {
        const std::vector<std::string>& outputs = options_.metrics[at].outputs;
        is_measured_[at] = std::all_of(outputs.begin(), outputs.end(),
                                       [&](const std::string& name) { return driver_.has_output(name); });
      }
    }
    if (!viewed_ && options_.tta != "none")
      viewed_.emplace(data::views_of(options_.tta), info_,
                      std::max<int64_t>(1, std::min(batch.samples.shape()[0], samples_)));
    driver_.bind_batch(viewed_ ? viewed_->show(batch) : batch);
    driver_.run();
  }

  /// For what the step exchanges with other ranks, which have rows.
  void run_without_rows(const data::Batch& like) {
    const auto zeros = [](const Tensor& tensor) {
      std::vector<int64_t> dims = tensor.shape().dims();
      dims[0] = 1;
      return Tensor(tensor.dtype(), Shape(dims));
    };
    run({.samples = zeros(like.samples), .targets = zeros(like.targets), .count = 1});
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
  std::vector<char> is_measured_;  // by metric, in the step that is selected
  data::Batch rows_;
};

/// By a request to any rank, where all have to run the same steps; else to this one.
bool is_stopped(const EvaluateOptions& options) {
  auto stops = static_cast<double>(options.stop_requested && options.stop_requested());
  if (options.gathers_weights) comm::all_reduce_max(*options.ranks, {&stops, 1}, "requests to stop an evaluation");
  return stops > 0;
}

/// Metrics of several values keep as many sums for each, one value after the other (weft/step/metrics).
MetricValues metrics_of_value(int64_t at, const std::vector<Sums::OfMetric>& measured,
                              const std::vector<MetricEntry>& metrics, const MetricTotals& totals) {
  const auto index = static_cast<size_t>(at), values = static_cast<size_t>(totals.info.classes);
  data::DatasetInfo info = totals.info;
  info.classes = 1;
  info.target_shape = Shape{1};
  if (!info.targets.deviation.empty()) info.targets = {{info.targets.mean[index]}, {info.targets.deviation[index]}};
  const MetricTotals of_one{totals.samples, totals.samples, totals.loss, info, totals.options};
  MetricValues found;
  for (size_t metric = 0; metric < metrics.size(); ++metric) {
    const std::span<const double> sums = measured[metric].sums;
    if (measured[metric].measured == 0 || !metrics[metric].sums || !metrics[metric].value) continue;
    const auto own = static_cast<size_t>(metrics[metric].sum_count(info));
    if (own * values != sums.size()) continue;
    found.push_back({metrics[metric].name, metrics[metric].value(sums.subspan(index * own, own), of_one)});
  }
  return found;
}

}  // namespace

Evaluation evaluate(program::Program& program, State& state, data::Loader& loader, const EvaluateOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const data::DatasetInfo& info = loader.dataset().info();
  check(options.ranks == nullptr || options.confusion == nullptr, "one process counts confusions");
  Shards shards(program, state, loader, options);
  loader.start(0, 0, 1);
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    if (is_stopped(options)) {
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
  const double predictions = info.has_ignored_targets()
                                 ? std::max(sums.counted, 1.0)
                                 : static_cast<double>(result.samples * info.predictions_per_sample());
  result.loss = sums.loss_sum / predictions;
  const MetricTotals totals{sums.samples, predictions, result.loss, info, options.metric_options};
  for (size_t at = 0; at < options.metrics.size(); ++at) {
    const MetricEntry& metric = options.metrics[at];
    const Sums::OfMetric& measured = sums.of_metrics[at];
    result.metrics.push_back({metric.name, {}});
    if (measured.measured == 0) continue;
    result.metrics.back().value = metric.value ? metric.value(measured.sums, totals) : measured.sums[0] / predictions;
  }
  if (info.target_kind() == data::TargetKind::values && info.classes > 1)
    for (int64_t at = 0; at < info.classes; ++at)
      result.of_values.push_back(metrics_of_value(at, sums.of_metrics, options.metrics, totals));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace weft::train
