// Fills in what a recipe leaves open and checks that its fields fit together.
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/runtime/cpu_backend.h"
#include "weft/train/compile_options.h"
#include "weft/train/optimizer_defaults.h"
#include "weft/train/recipe.h"
#include "weft/train/run_spec.h"

namespace weft::train {

namespace {

void resolve_optimizer(OptimizerSpec& optimizer) {
  for (const OptimizerDefaults& defaults : kOptimizers) {
    if (defaults.name != optimizer.name) continue;
    if (optimizer.learning_rate == 0) optimizer.learning_rate = defaults.learning_rate;
    if (optimizer.weight_decay < 0) optimizer.weight_decay = defaults.weight_decay;
    if (optimizer.momentum < 0) optimizer.momentum = defaults.momentum;
  }
  for (const auto& [name, group] : optimizer.groups)
    if (group.match.empty())
      fail(ErrorKind::usage,
           "optimizer.groups.{0} matches nothing: it has no match; set optimizer.groups.{0}.match to a glob such as "
           "'fc.*'",
           name);
}

bool uses_schedule(const RunSpec& spec, const std::string& name) {
  const auto& groups = spec.optimizer.groups;
  return spec.schedule.name == name ||
         std::any_of(groups.begin(), groups.end(), [&](const auto& group) { return group.second.schedule == name; });
}

void check_schedule(const RunSpec& spec) {
  const ScheduleSpec& schedule = spec.schedule;
  if (uses_schedule(spec, "one_cycle") && schedule.warmup_epochs != 0)
    fail(ErrorKind::usage,
         "schedule.warmup_epochs = {} with schedule.name = 'one_cycle': one_cycle warms up by itself; set "
         "schedule.rise instead",
         schedule.warmup_epochs);
  if (schedule.warmup_epochs > spec.epochs)
    fail(ErrorKind::usage, "schedule.warmup_epochs = {} is longer than the run of {} epochs; lower it",
         schedule.warmup_epochs, spec.epochs);
  if (!uses_schedule(spec, "piecewise")) return;
  const auto& boundaries = schedule.boundaries;
  if (boundaries.empty())
    fail(ErrorKind::usage, "schedule.name = 'piecewise' wants schedule.boundaries, such as [30, 60, 80] (epochs)");
  for (size_t index = 1; index < boundaries.size(); ++index)
    if (boundaries[index] <= boundaries[index - 1])
      fail(ErrorKind::usage, "schedule.boundaries = [{}] must rise from each to the next", fmt::join(boundaries, ", "));
  const size_t wanted = boundaries.size() + (schedule.lines ? 0 : 1);
  if (schedule.factors.size() != wanted && (schedule.lines || !schedule.factors.empty()))
    fail(ErrorKind::usage, "schedule.factors wants {} numbers for {} boundaries{}, got {}", wanted, boundaries.size(),
         schedule.lines ? " with schedule.lines" : "", schedule.factors.size());
}

}  // namespace

void resolve(RunSpec& spec) {
  if (spec.model.name.empty())
    fail(ErrorKind::usage, "no model given; name a recipe or add --model M (`weft models` lists them)");
  resolve_optimizer(spec.optimizer);
  if (spec.threads == 0) spec.threads = available_cores();
  if (spec.precision == "auto") spec.precision = automatic_precision(CpuBackend(1, KernelTable()));
  if (spec.evaluation.batch == 0) spec.evaluation.batch = spec.batch;
  check_schedule(spec);
  if (!spec.memory_limit.empty() && !parse_bytes(spec.memory_limit))
    fail(ErrorKind::usage, "memory_limit = '{}' is no amount of memory; write 1.5GB, 800MB or 2GiB", spec.memory_limit);
}

std::vector<std::string> keys_without_effect(const RunSpec& spec, data::Task task) {
  struct Use {
    std::string_view key, optimizers;  // those that read it
  };
  constexpr Use kUses[] = {{"optimizer.momentum", "sgd lars muon rmsprop"},
                           {"optimizer.nesterov", "sgd"},
                           {"optimizer.beta1", "adam adamw lamb muon"},
                           {"optimizer.beta2", "adam adamw lamb muon"},
                           {"optimizer.epsilon", "adam adamw lamb muon rmsprop"},
                           {"optimizer.smoothing", "rmsprop"},
                           {"optimizer.centered", "rmsprop"},
                           {"optimizer.trust_coefficient", "lars"},
                           {"optimizer.adamw_learning_rate_factor", "muon"}};
  RunSpec copy = spec, defaults;
  defaults.optimizer.name = spec.optimizer.name;
  resolve_optimizer(defaults.optimizer);
  const std::vector<Field> fields = fields_of(copy), default_fields = fields_of(defaults);
  std::vector<std::string> keys;
  for (const auto& [key, optimizers] : kUses) {
    if (fmt::format(" {} ", optimizers).find(fmt::format(" {} ", spec.optimizer.name)) != std::string::npos) continue;
    const auto value = [key = key](const std::vector<Field>& all) {
      return literal(*std::find_if(all.begin(), all.end(), [&](const Field& field) { return field.key == key; }));
    };
    if (value(fields) != value(default_fields))
      keys.push_back(fmt::format("{} = {} with optimizer.name = '{}'", key, value(fields), spec.optimizer.name));
  }
  if (spec.loss.label_smoothing > 0 && task == data::Task::regression)
    keys.push_back(fmt::format("loss.label_smoothing = {} where values are predicted", spec.loss.label_smoothing));
  return keys;
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

int64_t available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace weft::train
