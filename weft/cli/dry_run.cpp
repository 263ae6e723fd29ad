#include "weft/cli/dry_run.h"

#include <fmt/format.h>

#include <filesystem>

#include "weft/base/format.h"
#include "weft/base/memory.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/program/forecast.h"
#include "weft/run/chosen_strategy.h"
#include "weft/run/initial_weights.h"
#include "weft/run/run_directory.h"
#include "weft/run/starting_recipe.h"
#include "weft/run/weights_file.h"
#include "weft/step/step.h"

namespace weft::cli {

namespace {

constexpr double kSeconds = 2;  // of steps that are measured, for each shape

std::string bytes(int64_t count) { return human_bytes(static_cast<double>(count)); }

/// What may end the run before its last epoch.
std::string early_ends(const spec::RunSpec& spec) {
  std::string ends;
  const auto add = [&](const std::string& end) { ends += (ends.empty() ? "ends earlier " : ", or ") + end; };
  if (spec.max_steps > 0) add(fmt::format("after {} steps", spec.max_steps));
  if (!spec.max_time.empty()) add(fmt::format("after {}", human_duration(*spec::max_seconds(spec))));
  if (spec.stop.patience > 0)
    add(fmt::format("where {} does not improve in {} evaluations", spec.stop.monitor, spec.stop.patience));
  if (!spec.stop.target.empty()) add(fmt::format("where {} reaches {}", spec.stop.monitor, spec.stop.target));
  return ends;
}

/// What a run measures before its first step; here its usual values stand.
std::string left_open(const spec::RunSpec& spec) {
  std::string keys;
  const auto add = [&](bool is_open, const char* key) {
    if (is_open) keys += (keys.empty() ? "" : ", ") + std::string(key);
  };
  add(spec.measured.learning_rate, "learning rate");
  add(spec.measured.batch, "batch");
  add(spec.measured.warmup_steps, "warm-up");
  return keys.empty() ? "" : keys + ": measured before the first step, in less than 5 % of the run";
}

std::filesystem::path nearest_folder(std::filesystem::path path) {
  std::error_code code;
  path = std::filesystem::absolute(path.empty() ? "runs" : path, code);
  while (!std::filesystem::exists(path, code) && path.has_relative_path()) path = path.parent_path();
  return path;
}

std::string describe_disk(const program::Forecast& expected, const spec::RunSpec& spec, const std::string& directory) {
  // While one is written, the older ones and the best are still there.
  const int64_t most = (spec.checkpoint.keep + 2) * expected.checkpoint_bytes;
  std::error_code code;
  const auto space = std::filesystem::space(nearest_folder(directory), code);
  std::string text = fmt::format("up to {}, for checkpoints of {}", bytes(most), bytes(expected.checkpoint_bytes));
  if (!code) {
    text += fmt::format("; {} are free", bytes(static_cast<int64_t>(space.available)));
    if (static_cast<int64_t>(space.available) < most) text += ": too little";
  }
  return text;
}

}  // namespace

int dry_run(const Library& library, const spec::RunSpec& given, const std::string& directory, bool list_init) {
  spec::RunSpec spec = given;
  if (!spec.init.empty())
    for (const std::string& line : run::take_over(library, spec, run::describe_weights(spec.init))) say(line);
  run::RunDirectory::require_free(directory);
  run::choose_strategy(library, spec, nullptr, say);
  program::PreparedRun run(library, spec, {}, say);
  if (!spec.init.empty()) {
    State state;  // of nobody: whether they fit is what counts
    const run::InitialWeights weights =
        run::load_weights(state, run.step.parameters, spec.init, run::load_options_of(run.spec));
    for (const std::string& line : weights.describe(list_init)) say(line);
  }
  const program::Forecast expected = program::forecast(run, kSeconds);
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"data", fmt::format("{}: {}", run.run_data.description.info.name, run::describe_data(run.run_data))});
  table.add_row({"model", fmt::format("{}, {} parameters, {}", run.spec.model.name,
                                      human_count(static_cast<double>(step::parameter_count(run.step.parameters))),
                                      run.spec.precision)});
  const std::string accumulated =
      run.spec.accumulate > 1 ? fmt::format(" x {} accumulated", run.spec.accumulate) : std::string();
  table.add_row(
      {"training", fmt::format("{} epochs, {} steps of batch {}{}, {} with learning rate {}, schedule {}",
                               run.spec.epochs, expected.steps, run.spec.batch, accumulated, run.spec.optimizer.name,
                               run.spec.optimizer.learning_rate, run.spec.schedule.name)});
  if (const std::string open = left_open(given); !open.empty()) table.add_row({"", open});
  const std::string ends = early_ends(run.spec);
  if (!ends.empty()) table.add_row({"", ends});
  table.add_row({"memory", fmt::format("{} planned, and about {} for graphs and kernels; {} of {} are available",
                                       bytes(run.planned_total_bytes), bytes(run.graph_and_kernel_bytes()),
                                       bytes(available_memory_bytes()), bytes(memory_limit_bytes()))});
  table.add_row(
      {"step", fmt::format("{}, measured here on {} threads", program::in_words(expected.step), run.spec.threads)});
  table.add_row({"run", (ends.empty() ? "" : "at most ") + program::in_words(expected.run)});
  table.add_row({"disk", describe_disk(expected, run.spec, directory)});
  fmt::print("{}nothing was written; leave --dry-run away to train\n", table.text());
  return 0;
}

}  // namespace weft::cli
