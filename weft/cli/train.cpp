// weft train: from a recipe or flags to a run directory.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/open_dataset.h"
#include "weft/launch/launched_ranks.h"
#include "weft/run/run.h"
#include "weft/spec/key_reference.h"
#include "weft/train/interrupt.h"

namespace weft::cli {

namespace {

struct TrainOptions {
  std::string recipe, run, resume;
  std::optional<std::string> model, data, init, precision, loss_scaling, memory_limit, offload, cluster, autotune;
  std::optional<std::string> workers, cache_limit, max_bad_records;
  std::vector<std::string> precision_of;
  std::optional<double> epochs;
  std::optional<int64_t> batch, virtual_ranks, seed, threads;
  std::vector<std::string> set;
  bool quiet = false, json = false, tensorboard = false;
};

/// "auto" or a number.
int64_t parse_workers(const std::string& text) {
  int64_t workers = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), workers);
  if (text == "auto") return 0;
  if (code != std::errc() || end != text.data() + text.size() || workers < 1)
    fail(ErrorKind::usage, "--workers '{}': wants a whole number from 1 on, or auto", text);
  return workers;
}

/// `text` with one option of the data given or replaced.
std::string with_data_option(const std::string& text, const std::string& name, const std::string& value) {
  data::DataSpec spec = data::parse_data_spec(text);
  std::erase_if(spec.options, [&](const auto& option) { return option.first == name; });
  spec.options.emplace_back(name, value);
  const std::string changed = data::print_data_spec(spec);
  if (data::parse_data_spec(changed).options.size() != spec.options.size())
    fail(ErrorKind::usage, "data '{}' lies in memory and has no option '{}'; leave it away", text, name);
  return changed;
}

/// "auto", or a size, in the data's own unit: MB.
std::string cache_option_of(const std::string& text) {
  if (text == "auto" || text == "0") return text;
  const std::optional<int64_t> bytes = parse_bytes(text);
  if (!bytes) fail(ErrorKind::usage, "--cache-limit '{}': wants a size such as 2GB, 0, or auto", text);
  return std::to_string(*bytes / 1'000'000);
}

/// "auto", "none", "dynamic", or a number: the scale, which then stays.
void set_loss_scaling(spec::RunSpec& spec, const std::string& text, const Library& library) {
  double scale = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), scale);
  const bool is_number = code == std::errc() && end == text.data() + text.size();
  spec::set_field(spec, "loss_scaling.mode", is_number ? "fixed" : text, "--loss-scaling", library);
  if (is_number) spec::set_field(spec, "loss_scaling.scale", scale, "--loss-scaling", library);
}

spec::RunSpec spec_from(const Library& library, const TrainOptions& options) {
  spec::RunSpec spec;
  if (!options.recipe.empty()) apply_recipe(library, spec, options.recipe);
  if (options.model) {
    if (*options.model != spec.model.name) spec.model.options.clear();  // they belong to the recipe's model
    spec::set_field(spec, "model.name", *options.model, "--model", library);
  }
  if (options.data) spec::set_field(spec, "data", *options.data, "--data", library);
  if (options.init) spec::set_field(spec, "init", *options.init, "--init", library);
  if (options.epochs) spec::set_field(spec, "epochs", *options.epochs, "--epochs", library);
  if (options.batch) spec::set_field(spec, "batch", *options.batch, "--batch", library);
  if (options.virtual_ranks) spec::set_field(spec, "virtual_ranks", *options.virtual_ranks, "--virtual-ranks", library);
  if (options.memory_limit) spec::set_field(spec, "memory_limit", *options.memory_limit, "--memory-limit", library);
  if (options.offload) spec::set_field(spec, "offload", *options.offload, "--offload", library);
  if (options.cluster) spec::set_field(spec, "cluster", *options.cluster, "--cluster", library);
  if (options.seed) spec::set_field(spec, "seed", *options.seed, "--seed", library);
  if (options.threads) spec::set_field(spec, "threads", *options.threads, "--threads", library);
  if (options.workers) spec::set_field(spec, "loader.workers", parse_workers(*options.workers), "--workers", library);
  if (options.cache_limit) spec.data = with_data_option(spec.data, "cache", cache_option_of(*options.cache_limit));
  if (options.max_bad_records) spec.data = with_data_option(spec.data, "max_bad_records", *options.max_bad_records);
  if (options.precision) spec::set_field(spec, "precision", *options.precision, "--precision", library);
  if (!options.precision_of.empty())
    spec::set_field(spec, "precision_of", joined(options.precision_of), "--precision-of", library);
  if (options.loss_scaling) set_loss_scaling(spec, *options.loss_scaling, library);
  for (const std::string& assignment : options.set) spec::set_from_text(spec, assignment, library);
  spec::resolve(spec, library);
  return spec;
}

void refuse_with_resume(const TrainOptions& options) {
  const bool others = !options.recipe.empty() || !options.run.empty() || options.model || options.data ||
                      options.init || options.memory_limit || options.offload || options.cluster || options.epochs ||
                      options.batch || options.virtual_ranks || options.seed || options.workers ||
                      options.cache_limit || options.max_bad_records || options.precision ||
                      !options.precision_of.empty() || options.loss_scaling || options.autotune || !options.set.empty();
  if (others)
    fail(ErrorKind::usage,
         "--resume takes everything from the run directory; leave the recipe and all options but --threads, --quiet, "
         "--tensorboard and --json away");
}

/// What the task is judged by.
void add_results(Table& table, const run::Summary& s, const Library& library, const TaskEntry& task) {
  const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{:.4f}", *value) : "-"; };
  const auto best = [&](const std::string& name, const std::string& value) {
    return s.best.name == name ? fmt::format(" (best {})", value) : "";
  };
  for (const auto& [name, value] : s.test_metrics)
    if (const MetricEntry* metric = find_entry(library.metrics, name))
      table.add_row({"test " + metric->label, shown(*metric, value) + best(name, shown(*metric, s.best.value))});
  const std::string unit = task.loss_unit.empty() ? "" : " " + task.loss_unit;
  table.add_row({"test loss", number(s.test_loss) + unit + best("loss", number(s.best.value))});
}

void print_result(const run::RunOutcome& outcome, const Library& library, const std::string& program) {
  const run::Summary& s = outcome.summary;
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"model", fmt::format("{}, {} parameters", s.model, human_count(static_cast<double>(s.parameters)))});
  const std::string batches =
      s.batches.empty() ? std::to_string(s.batch) : fmt::format("{}", fmt::join(s.batches, ", then "));
  table.add_row({"data", fmt::format("{}, {} epochs of batch {}", s.data, s.epochs, batches)});
  if (!s.image_heights.empty())
    table.add_row({"images", fmt::format("of height {}", fmt::join(s.image_heights, ", then "))});
  const TaskEntry& task = task_entry(library, s.task);
  add_results(table, s, library, task);
  const std::string ranks = s.ranks > 1 ? fmt::format("{} ranks of ", s.ranks) : "";
  table.add_row({"time", fmt::format("{} on {}{} threads", human_duration(s.train_seconds), ranks, s.threads)});
  if (s.input_wait_seconds > 0.01 * s.step_seconds)
    table.add_row({"waited", fmt::format("{} for data ({:.1f} % of the steps)", human_duration(s.input_wait_seconds),
                                         100 * s.input_wait_seconds / s.step_seconds)});
  if (s.loss_scale)
    table.add_row({"loss scale", fmt::format("{:g}, {} of {} steps skipped", *s.loss_scale, s.skipped_steps, s.steps)});
  if (s.damaged_samples > 0) table.add_row({"damaged", fmt::format("{} samples, passed over", s.damaged_samples)});
  table.add_row({"speed", fmt::format("{:.0f} {}/s", s.items_per_second, s.item)});
  table.add_row(
      {"memory", fmt::format("{} planned, {} measured", bytes(s.planned_total_bytes), bytes(s.rss_growth_bytes))});
  const std::string run = outcome.directory.string();
  const std::string file = !task.predicted_file.empty() ? task.predicted_file
                           : s.item == "images"         ? "IMAGE.png"
                           : s.item == "rows"           ? "ROWS.csv"
                                                        : "LINES.txt";
  fmt::print("{0}\nrun directory: {1}\nnext, try:\n  {2} eval {1}\n  {2} explain {1}\n  {2} predict {1} {3}\n",
             table.text(), run, program, file);
}

run::RunOutcome train_or_resume(const Library& library, const TrainOptions& options, comm::Communicator* ranks) {
  const train::InterruptGuard interrupt;
  const run::RunOptions run_options{.progress = options.quiet ? nullptr : stderr,
                                    .note = say,
                                    .stop_requested = [&] { return interrupt.requested(); },
                                    .tensorboard = options.tensorboard,
                                    .autotune = program::parse_autotune(options.autotune.value_or("off")),
                                    .ranks = ranks};
  if (options.resume.empty()) {
    spec::RunSpec spec;
    comm::on_all_ranks(ranks, "recipe", [&] { spec = spec_from(library, options); });
    return run::start_run(library, spec, options.run, run_options);
  }
  comm::on_all_ranks(ranks, "options", [&] { refuse_with_resume(options); });
  return run::resume_run(library, options.resume, options.threads.value_or(0), run_options);
}

int train_command(const Library& library, const TrainOptions& options, const std::string& program,
                  comm::Communicator* ranks) {
  const run::RunOutcome outcome = train_or_resume(library, options, ranks);
  if (!comm::is_first(ranks)) return outcome.finished ? 0 : train::kInterruptedExitCode;
  if (!outcome.finished) {
    say(fmt::format("interrupted after step {}; go on with `{} train --resume {}`", outcome.steps_done, program,
                    outcome.directory.string()));
    return train::kInterruptedExitCode;
  }
  if (options.json)
    fmt::print("{}", run::print_summary(outcome.summary));
  else
    print_result(outcome, library, program);
  return 0;
}

}  // namespace

void add_train(CLI::App& app, Action& action, const Library& library, const std::string& program) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model and keep everything about it in a run directory");
  command->footer("Several processes train as one under `mpirun -n 4 weft train ...` or `srun weft train ...`.");
  command->add_option("RECIPE", options->recipe,
                      "TOML file, or a name from `weft recipes`; what it leaves out has defaults");
  command->add_option("--model", options->model, "Model (see `weft models`)");
  command->add_option("--data", options->data,
                      data::dataset_forms(library.data) + " (`weft data --help` explains them)");
  command->add_option("--init", options->init, spec::flag_help("init"));
  command->add_option("--epochs", options->epochs, spec::flag_help("epochs"));
  command->add_option("--batch", options->batch, spec::flag_help("batch"));
  command->add_option("--virtual-ranks", options->virtual_ranks, spec::flag_help("virtual_ranks"));
  command->add_option("--memory-limit", options->memory_limit, spec::flag_help("memory_limit"));
  command->add_option("--offload", options->offload, spec::flag_help("offload"));
  command->add_option("--cluster", options->cluster, spec::flag_help("cluster"));
  command->add_option("--seed", options->seed, spec::flag_help("seed"));
  command->add_option("--threads", options->threads, spec::flag_help("threads"));
  command->add_option("--workers", options->workers,
                      "Threads that make batches; default auto: as many as the steps need, by measurement");
  command->add_option("--cache-limit", options->cache_limit,
                      "Memory for decoded pictures of each split, such as 2GB; default auto: by what is free");
  command->add_option("--max-bad-records", options->max_bad_records,
                      "Damaged records of packed data that are passed over, a number or a share; default 1%");
  command->add_option("--precision", options->precision, spec::flag_help("precision"));
  command
      ->add_option("--precision-of", options->precision_of,
                   "NAME=f32: an exception by node or op (see `weft graph`), such as softmax=f32; repeatable")
      ->allow_extra_args(false);
  command->add_option("--autotune", options->autotune, std::string(program::kAutotuneHelp) + "; default: off");
  command->add_option("--loss-scaling", options->loss_scaling,
                      "auto (default: dynamic in f16, else none), none, dynamic, or a number: the scale that stays");
  command->add_option("--run", options->run, "New run directory; default: runs/MODEL-DATA-N");
  command->add_option("--set", options->set, "Any key of the recipe, such as optimizer.learning_rate=0.2; repeatable")
      ->allow_extra_args(false);
  command->add_option("--resume", options->resume, "Go on in this run directory from its newest whole checkpoint");
  command->add_flag("--tensorboard", options->tensorboard,
                    "Write event files for `tensorboard --logdir RUN`; a resumed run goes on with them");
  command->add_flag("--quiet", options->quiet, "No progress line");
  command->add_flag("--json", options->json, "Print summary.json instead of the table");
  command->callback([options, program, &action, &library] {
    action = [options, program, &library] {
      return launch::on_launched_ranks(
          [&](comm::Communicator* ranks) { return train_command(library, *options, program, ranks); });
    };
  });
}

}  // namespace weft::cli
