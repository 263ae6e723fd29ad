// Fills in what a recipe leaves open and checks that its fields fit together.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/names.h"
#include "weft/base/parse_number.h"
#include "weft/spec/check_ranks.h"
#include "weft/spec/course.h"
#include "weft/spec/recipe.h"
#include "weft/spec/recipe_keys.h"
#include "weft/spec/resolve_optimizer.h"
#include "weft/spec/run_spec.h"

namespace weft::spec {

namespace {

void check_schedule(const RunSpec& spec, const Entries& entries) {
  std::set<std::string> names = {spec.schedule.name};
  for (const auto& [group, parameters] : spec.optimizer.groups)
    if (!parameters.schedule.empty()) names.insert(parameters.schedule);
  for (const std::string& name : names) {
    const ScheduleEntry* entry = find_entry(entries.schedules, name);
    if (entry == nullptr)
      fail(ErrorKind::usage, "there is no schedule '{}'{}", name, suggestion(name, names_of(entries.schedules)));
    if (entry->check) entry->check(spec.schedule);
  }
  if (spec.schedule.warmup_epochs > 0 && spec.schedule.warmup_steps > 0)
    fail(ErrorKind::usage, "schedule.warmup_epochs = {} beside schedule.warmup_steps = {}; give one of the two",
         spec.schedule.warmup_epochs, spec.schedule.warmup_steps);
  if (spec.schedule.warmup_epochs > spec.epochs)
    fail(ErrorKind::usage, "schedule.warmup_epochs = {} is longer than the run of {} epochs; lower it",
         spec.schedule.warmup_epochs, spec.epochs);
}

void check_loss(const LossSpec& loss, const Entries& entries) {
  if (loss.name != "auto" && find_entry(entries.losses, loss.name) == nullptr)
    fail(ErrorKind::usage, "there is no loss '{}'{}", loss.name, suggestion(loss.name, names_of(entries.losses)));
}

void check_momentum_schedule(const OptimizerSpec& optimizer, const Entries& entries) {
  const MomentumScheduleSpec& schedule = optimizer.momentum_schedule;
  if (!schedule.changes()) return;
  std::vector<std::string> with_momentum;
  for (const OptimizerEntry& entry : entries.optimizers)
    if (find_key(entry, "momentum") != nullptr) with_momentum.push_back(entry.name);
  if (std::find(with_momentum.begin(), with_momentum.end(), optimizer.name) == with_momentum.end())
    fail(ErrorKind::usage, "momentum_schedule.name = '{}' with optimizer.name = '{}', which has no momentum; choose {}",
         schedule.name, optimizer.name, fmt::join(with_momentum, ", "));
  if (schedule.name == "one_cycle" && schedule.low > schedule.high)
    fail(ErrorKind::usage, "momentum_schedule.low = {} is above momentum_schedule.high = {}; exchange them",
         schedule.low, schedule.high);
  if (schedule.name != "piecewise") return;
  const auto& boundaries = schedule.boundaries;
  if (boundaries.empty())
    fail(ErrorKind::usage,
         "momentum_schedule.name = 'piecewise' wants momentum_schedule.boundaries, such as [5] (epochs)");
  for (size_t index = 1; index < boundaries.size(); ++index)
    if (boundaries[index] <= boundaries[index - 1])
      fail(ErrorKind::usage, "momentum_schedule.boundaries = [{}] must rise from each to the next",
           fmt::join(boundaries, ", "));
  const size_t wanted = boundaries.size() + (schedule.lines ? 0 : 1);
  if (schedule.momenta.size() != wanted)
    fail(ErrorKind::usage, "momentum_schedule.momenta wants {} numbers for {} boundaries{}, got {}", wanted,
         boundaries.size(), schedule.lines ? " with momentum_schedule.lines" : "", schedule.momenta.size());
}

/// Of a list that changes during the run: `values` before and after each of the boundaries.
void check_stages(const std::string& section, const std::vector<double>& boundaries, const char* key,
                  const std::vector<double>& values, const RunSpec& spec) {
  if (values.empty()) return;
  if (values.size() != boundaries.size() + 1)
    fail(ErrorKind::usage, "{0}.{1} wants {2} numbers for {3} boundaries, one before and one after each, got {4}",
         section, key, boundaries.size() + 1, boundaries.size(), values.size());
  for (const double value : values)
    if (value != std::floor(value)) fail(ErrorKind::usage, "{}.{}: {} is no whole number", section, key, value);
  double last = -std::numeric_limits<double>::infinity();
  for (const double boundary : boundaries) {
    const double epoch = boundary_epoch(boundary, spec);
    if (boundary == 0)
      fail(ErrorKind::usage,
           "{}.boundaries: 0 is the beginning of the run, where the first value holds; write epochs above 0, such as 1 "
           "or 0.5, or from the end, such as -1",
           section);
    if (epoch <= last)
      fail(ErrorKind::usage, "{}.boundaries = [{}] must rise from each to the next{}", section,
           fmt::join(boundaries, ", "),
           boundary < 0 ? fmt::format(": {} is epoch {} of a run of {}", boundary, epoch, begun_epochs(spec)) : "");
    last = epoch;
  }
}

void check_stages(const RunSpec& spec) {
  const BatchScheduleSpec& batches = spec.batch_schedule;
  const ImageScheduleSpec& images = spec.image_schedule;
  check_stages("batch_schedule", batches.boundaries, "batches", batches.batches, spec);
  check_stages("batch_schedule", batches.boundaries, "accumulate", batches.accumulate, spec);
  check_stages("image_schedule", images.boundaries, "sizes", images.sizes, spec);
  if (!batches.boundaries.empty() && batches.batches.empty() && batches.accumulate.empty())
    fail(ErrorKind::usage,
         "batch_schedule.boundaries without batch_schedule.batches: give the batches before and after each, such as "
         "[128, 256] for one boundary");
  if (!images.boundaries.empty() && images.sizes.empty())
    fail(ErrorKind::usage,
         "image_schedule.boundaries without image_schedule.sizes: give the heights before and after each, such as "
         "[96, 128] for one boundary");
}

/// The part before the first '_' of a metric of epochs: "validation" of "validation_loss".
std::string part_of(const std::string& monitor) { return monitor.substr(0, monitor.find('_')); }

/// Error(usage) where `monitor` is no metric of epochs, or nothing would measure it.
void check_monitor(const char* key, const std::string& monitor, const RunSpec& spec, const Entries& entries) {
  std::vector<std::string> known = {"train_loss", "train_accuracy", "validation_loss", "test_loss"};
  for (const MetricEntry& metric : entries.metrics)
    for (const char* part : {"validation_", "test_"}) known.push_back(part + metric.name);
  if (std::find(known.begin(), known.end(), monitor) == known.end())
    fail(ErrorKind::usage, "{} = '{}' is no metric{}; choose one of: {}", key, monitor, suggestion(monitor, known),
         fmt::join(known, ", "));
  if (part_of(monitor) == "validation" && !has_validation(spec))
    fail(ErrorKind::usage, "{} = '{}', but there is no validation part; set validation=0.1", key, monitor);
}

/// Fills in what a metric decides, and checks that there is one.
void resolve_monitors(RunSpec& spec, const Entries& entries) {
  if (spec.schedule.name == "plateau") {
    std::string& monitor = spec.schedule.monitor;
    if (monitor == "auto") monitor = has_validation(spec) ? "validation_loss" : "train_loss";
    check_monitor("schedule.monitor", monitor, spec, entries);
  }
  StopSpec& stop = spec.stop;
  if (stop.patience == 0 && stop.target.empty()) return;
  if (stop.monitor == "auto") stop.monitor = "validation_loss";
  check_monitor("stop.monitor", stop.monitor, spec, entries);
  if (!stop.target.empty() && !parse_number<double>(stop.target))
    fail(ErrorKind::usage, "stop.target = '{}' is no number; give the value of {} at which the run ends, such as 0.95",
         stop.target, stop.monitor);
}

void check_validation(const RunSpec& spec) {
  const std::optional<double> share = validation_share(spec);
  if (share && !(*share >= 0 && *share < 1))
    fail(ErrorKind::usage,
         "validation = {} is out of range: a share of the training data from 0 (none) to below 1, such as 0.1",
         spec.validation);
  if (spec.evaluation.every_steps > 0 && !has_validation(spec))
    fail(ErrorKind::usage, "evaluation.every_steps = {}, but there is no validation part; set validation=0.1",
         spec.evaluation.every_steps);
  if (!spec.max_time.empty() && !parse_duration(spec.max_time))
    fail(ErrorKind::usage, "max_time = '{}' is no duration; write 90m, 2h, 1h 30m or 3600 (seconds)", spec.max_time);
}

/// What gradients of one rank cannot be measured with; null: nothing.
const char* noise_conflict(const RunSpec& spec) {
  return scales_loss(spec)              ? "a loss that is scaled: set loss_scaling.mode=none"
         : spec.virtual_ranks > 0       ? "virtual ranks: set virtual_ranks=0"
         : spec.shard.zero == 3         ? "weights that ranks share: set shard.zero to 2 or less"
         : spec.mesh.tensor > 1         ? "ranks that share the layers: set mesh.tensor=1"
         : spec.mesh.pipeline > 1       ? "ranks that divide the layers: set mesh.pipeline=1"
         : spec.balance.grains > 0      ? "grains: set balance.grains=0"
         : spec.shard.experts == "data" ? "experts that ranks divide: set shard.experts=whole"
                                        : nullptr;
}

void check_noise(const RunSpec& spec) {
  if (spec.metrics.noise_every == 0) return;
  if (const char* conflict = noise_conflict(spec))
    fail(ErrorKind::usage, "metrics.noise_every = {} measures gradients of one rank, which it cannot with {}",
         spec.metrics.noise_every, conflict);
}

/// Of what is measured before the first step.
void check_measured(const RunSpec& spec) {
  const MeasuredKeys& measured = spec.measured;
  const char* const key = measured.batch ? "batch" : "schedule.warmup_steps";
  if (const char* conflict = measured.needs_noise() ? noise_conflict(spec) : nullptr)
    fail(ErrorKind::usage, "{} = 'auto' measures gradients of one rank, which it cannot with {}", key, conflict);
  if (measured.batch && !spec.batch_schedule.batches.empty())
    fail(ErrorKind::usage,
         "batch = 'auto' beside batch_schedule.batches, which say each batch of the run; leave one of the two away");
  if (!measured.warmup_steps) return;
  if (spec.schedule.name == "one_cycle")
    fail(ErrorKind::usage,
         "schedule.warmup_steps = 'auto' with schedule.name = 'one_cycle', which warms up by itself; leave it away");
  if (spec.schedule.warmup_epochs > 0)
    fail(ErrorKind::usage, "schedule.warmup_steps = 'auto' beside schedule.warmup_epochs = {}; give one of the two",
         spec.schedule.warmup_epochs);
}

}  // namespace

std::optional<double> validation_share(const RunSpec& spec) {
  return spec.validation.empty() ? 0 : parse_number<double>(spec.validation);
}

bool has_validation(const RunSpec& spec) { return validation_share(spec).value_or(1) > 0; }

std::optional<double> max_seconds(const RunSpec& spec) { return parse_duration(spec.max_time); }

bool scales_loss(const RunSpec& spec) {
  const std::string& mode = spec.loss_scaling.mode;
  return mode == "dynamic" || mode == "fixed" || (mode == "auto" && spec.precision == "f16");
}

void resolve(RunSpec& spec, const Entries& entries) {
  if (spec.model.name.empty())
    fail(ErrorKind::usage, "no model given; name a recipe or add --model M (`weft models` lists them)");
  resolve_optimizer(spec.optimizer, entries);
  fill_own_keys(spec, entries);
  // Sums of kernels may depend on the threads, which must not follow from the ranks on a host where the weights do not.
  if (spec.threads == 0) spec.threads = spec.virtual_ranks > 0 ? 1 : available_cores();
  if (spec.evaluation.batch == 0) spec.evaluation.batch = spec.batch;
  check_schedule(spec, entries);
  check_momentum_schedule(spec.optimizer, entries);
  check_loss(spec.loss, entries);
  check_stages(spec);
  if (spec.compression.method != "none" && scales_loss(spec))
    fail(ErrorKind::usage,
         "compression.method = '{}' keeps what it leaves out, which a gradient that is not finite would spoil: set "
         "loss_scaling.mode=none, or compute in bf16 or f32",
         spec.compression.method);
  check_ranks(spec);
  check_noise(spec);
  check_measured(spec);
  check_validation(spec);
  resolve_monitors(spec, entries);
  if (!spec.memory_limit.empty() && !parse_bytes(spec.memory_limit))
    fail(ErrorKind::usage, "memory_limit = '{}' is no amount of memory; write 1.5GB, 800MB or 2GiB", spec.memory_limit);
  if (parse_bytes(spec.offload_rate).value_or(0) <= 0)
    fail(ErrorKind::usage, "offload_rate = '{}' is no amount of bytes (per second); write 1GB or 200MB",
         spec.offload_rate);
}

namespace {

/// Rounded up, but for what rounding in double has left over a whole number: 1.1 of 10 steps are 11.
int64_t begun(double number) { return static_cast<int64_t>(std::ceil(number * (1 - 1e-12))); }

}  // namespace

int64_t begun_epochs(const RunSpec& spec) { return begun(spec.epochs); }

int64_t total_steps(const RunSpec& spec, int64_t steps_per_epoch) {
  return begun(spec.epochs * static_cast<double>(steps_per_epoch));
}

void choose_threads(RunSpec& spec, int64_t threads) {
  spec.threads = threads > 0 ? threads : std::min(spec.threads, available_cores());
}

}  // namespace weft::spec
