// weft train: from a recipe or flags to a run directory.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/parse_number.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/dry_run.h"
#include "weft/cli/options.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/open_dataset.h"
#include "weft/launch/launched_ranks.h"
#include "weft/report/result_table.h"
#include "weft/run/run.h"
#include "weft/run/run_changes.h"
#include "weft/spec/key_reference.h"
#include "weft/train/interrupt.h"

namespace weft::cli {

namespace {

struct TrainOptions {
  std::string recipe, run, resume;
  std::optional<std::string> model, data, init, init_head, precision, loss_scaling, memory_limit, offload, cluster,
      autotune, strategy;
  std::optional<std::string> workers, cache_limit, max_bad_records, validation, max_time;
  std::vector<std::string> precision_of, freeze, groups;
  std::optional<double> epochs;
  std::optional<int64_t> batch, max_steps, virtual_ranks, zero, tensor, seed, threads;
  int64_t pause_epochs = 0;
  std::vector<std::string> set;
  bool init_partial = false, list_init = false;
  bool quiet = false, json = false, tensorboard = false, copies = false, dry_run = false;
};

/// "auto" or a number.
int64_t parse_workers(const std::string& text) {
  if (text == "auto") return 0;
  const std::optional<int64_t> workers = parse_number<int64_t>(text);
  if (!workers || *workers < 1) fail(ErrorKind::usage, "--workers '{}': wants a whole number from 1 on, or auto", text);
  return *workers;
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
  const std::optional<double> scale = parse_number<double>(text);
  spec::set_field(spec, "loss_scaling.mode", scale ? "fixed" : text, "--loss-scaling", library);
  if (scale) spec::set_field(spec, "loss_scaling.scale", *scale, "--loss-scaling", library);
}

/// "PATTERN:KEY=VALUE,KEY=VALUE" as a group of its own, with the keys of optimizer.groups.NAME.
void add_group(spec::RunSpec& spec, const std::string& text, const Library& library) {
  const std::string where = fmt::format("--group '{}'", text);
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || text.find('=', colon) == std::string::npos)
    fail(ErrorKind::usage, "{}: wants PATTERN:KEY=VALUE, such as 'layer4.*:learning_rate_factor=0.1'", where);
  std::string name;
  for (int number = 1; name.empty() || spec.optimizer.groups.contains(name); ++number)
    name = fmt::format("group{}", number);
  const std::string section = "optimizer.groups." + name + ".";
  spec::set_field(spec, section + "match", text.substr(0, colon), where, library);
  for (size_t begin = colon + 1; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string assignment = text.substr(begin, end - begin);
    if (assignment.starts_with("match="))
      fail(ErrorKind::usage, "{}: '{}' contradicts the pattern, which stands before the colon; give one of them", where,
           assignment);
    spec::set_from_text(spec, section + assignment, library);
    begin = end + 1;
  }
}

/// `is_alone`: not one of several ranks, whose cores a launcher has shared out.
spec::RunSpec spec_from(const Library& library, const TrainOptions& options, bool is_alone) {
  spec::RunSpec spec;
  if (!options.recipe.empty()) apply_recipe(library, spec, options.recipe);
  if (options.model) {
    if (*options.model != spec.model.name) spec.model.options.clear();  // they belong to the recipe's model
    spec::set_field(spec, "model.name", *options.model, "--model", library);
  }
  if (options.data) spec::set_field(spec, "data", *options.data, "--data", library);
  if (options.init) spec::set_field(spec, "init", *options.init, "--init", library);
  if (options.init_head) spec::set_field(spec, "init_head", *options.init_head, "--init-head", library);
  if (options.init_partial) spec::set_field(spec, "init_partial", true, "--init-partial", library);
  if (!options.freeze.empty()) spec::set_field(spec, "optimizer.freeze", joined(options.freeze), "--freeze", library);
  for (const std::string& group : options.groups) add_group(spec, group, library);
  if (options.epochs) spec::set_field(spec, "epochs", *options.epochs, "--epochs", library);
  if (options.max_steps) spec::set_field(spec, "max_steps", *options.max_steps, "--max-steps", library);
  if (options.max_time) spec::set_field(spec, "max_time", *options.max_time, "--max-time", library);
  if (options.validation) spec::set_field(spec, "validation", *options.validation, "--validation", library);
  if (options.batch) spec::set_field(spec, "batch", *options.batch, "--batch", library);
  if (options.virtual_ranks) spec::set_field(spec, "virtual_ranks", *options.virtual_ranks, "--virtual-ranks", library);
  if (options.zero) spec::set_field(spec, "shard.zero", *options.zero, "--zero", library);
  if (options.tensor) spec::set_field(spec, "mesh.tensor", *options.tensor, "--tensor", library);
  if (options.strategy) spec::set_field(spec, "strategy", *options.strategy, "--strategy", library);
  if (options.memory_limit) spec::set_field(spec, "memory_limit", *options.memory_limit, "--memory-limit", library);
  if (options.offload) spec::set_field(spec, "offload", *options.offload, "--offload", library);
  if (options.cluster) spec::set_field(spec, "cluster", *options.cluster, "--cluster", library);
  if (options.seed) spec::set_field(spec, "seed", *options.seed, "--seed", library);
  if (options.threads) spec::set_field(spec, "threads", *options.threads, "--threads", library);
  if (options.workers) spec::set_field(spec, "loader.workers", parse_workers(*options.workers), "--workers", library);
  if (options.cache_limit) spec.data = data::with_option(spec.data, "cache", cache_option_of(*options.cache_limit));
  if (options.max_bad_records) spec.data = data::with_option(spec.data, "max_bad_records", *options.max_bad_records);
  if (options.precision) spec::set_field(spec, "precision", *options.precision, "--precision", library);
  if (!options.precision_of.empty())
    spec::set_field(spec, "precision_of", joined(options.precision_of), "--precision-of", library);
  if (options.loss_scaling) set_loss_scaling(spec, *options.loss_scaling, library);
  for (const std::string& assignment : options.set) spec::set_from_text(spec, assignment, library);
  const bool sets_data = std::any_of(options.set.begin(), options.set.end(),
                                     [](const std::string& assignment) { return assignment.starts_with("data="); });
  if (options.recipe.empty() && !options.data && !sets_data)
    fail(ErrorKind::usage,
         "there are no data to train on: give a recipe (`weft recipes` lists some, `weft init SPEC` writes one), or "
         "--data SPEC, such as --data fashion-mnist (`weft data --help` lists what there is)");
  if (const int64_t cores = available_cores(); is_alone && spec.threads > cores) {
    say(fmt::format("{} threads on {} cores would wait for each other: taking {}", spec.threads, cores, cores));
    spec.threads = cores;
  }
  spec::resolve(spec, library);
  return spec;
}

/// What a resumed run changes, as assignments. Error(usage) for options that are none of its.
std::vector<std::string> changes_of_resume(const TrainOptions& options) {
  const std::pair<const char*, bool> others[] = {{"the recipe", !options.recipe.empty()},
                                                 {"--run", !options.run.empty()},
                                                 {"--model", options.model.has_value()},
                                                 {"--data", options.data.has_value()},
                                                 {"--validation", options.validation.has_value()},
                                                 {"--init", options.init.has_value()},
                                                 {"--init-head", options.init_head.has_value()},
                                                 {"--init-partial", options.init_partial},
                                                 {"--freeze", !options.freeze.empty()},
                                                 {"--group", !options.groups.empty()},
                                                 {"--strategy", options.strategy.has_value()},
                                                 {"--memory-limit", options.memory_limit.has_value()},
                                                 {"--offload", options.offload.has_value()},
                                                 {"--cluster", options.cluster.has_value()},
                                                 {"--batch", options.batch.has_value()},
                                                 {"--virtual-ranks", options.virtual_ranks.has_value()},
                                                 {"--seed", options.seed.has_value()},
                                                 {"--cache-limit", options.cache_limit.has_value()},
                                                 {"--max-bad-records", options.max_bad_records.has_value()},
                                                 {"--precision", options.precision.has_value()},
                                                 {"--precision-of", !options.precision_of.empty()},
                                                 {"--loss-scaling", options.loss_scaling.has_value()},
                                                 {"--autotune", options.autotune.has_value()}};
  for (const auto& [name, is_given] : others)
    if (is_given)
      fail(ErrorKind::usage, "--resume takes {} from the run directory; leave it away. What may change: {}", name,
           fmt::join(run::changeable_keys(), ", "));
  std::vector<std::string> changes;
  if (options.epochs) changes.push_back(fmt::format("epochs={}", *options.epochs));
  if (options.max_steps) changes.push_back(fmt::format("max_steps={}", *options.max_steps));
  if (options.max_time) changes.push_back("max_time=" + *options.max_time);
  if (options.zero) changes.push_back(fmt::format("shard.zero={}", *options.zero));
  if (options.tensor) changes.push_back(fmt::format("mesh.tensor={}", *options.tensor));
  if (options.workers) changes.push_back(fmt::format("loader.workers={}", parse_workers(*options.workers)));
  changes.insert(changes.end(), options.set.begin(), options.set.end());
  return changes;
}

void print_result(const run::RunOutcome& outcome, const Library& library, const std::string& program) {
  const run::Summary& s = outcome.summary;
  const TaskEntry& task = task_entry(library, s.task);
  const std::string run = quoted_for_shell(outcome.directory.string());
  const std::string file = !task.predicted_file.empty() ? task.predicted_file
                           : s.item == "images"         ? "IMAGE.png"
                           : s.item == "rows"           ? "ROWS.csv"
                                                        : "LINES.txt";
  // As many ranks explain the step that the run had; a mesh is that of no other number.
  const std::string launcher = s.ranks > 1 ? fmt::format("mpirun -n {} ", s.ranks) : "";
  fmt::print("{0}\nrun directory: {4}\nnext, try:\n  {2} eval {1}\n  {5}{2} explain {1}\n  {2} predict {1} {3}\n",
             report::result_table(s, library).text(), run, quoted_for_shell(program), file,
             printable(outcome.directory.string()), launcher);
}

/// With as many ranks as now.
std::string resuming_command(const run::RunOutcome& outcome, const std::string& program,
                             const comm::Communicator* ranks) {
  const int count = comm::number_of(ranks);
  return fmt::format("{} {}train --resume {}", quoted_for_shell(program),
                     count > 1 ? fmt::format("launch -n {} -- ", count) : "",
                     quoted_for_shell(outcome.directory.string()));
}

/// What --dry-run measures is a step of one process.
[[noreturn]] void fail_dry_run_of_ranks(const TrainOptions& options, int64_t ranks) {
  const std::string of = !options.recipe.empty() ? options.recipe : options.model.value_or("MODEL");
  fail(ErrorKind::usage,
       "--dry-run measures steps of one process, and these are steps of {0} ranks; `weft plan {1} --ranks {0}`, with "
       "the same --set and --batch, says what they take",
       ranks, quoted_for_shell(of));
}

/// The fewest that train it.
int64_t ranks_wanted(const spec::RunSpec& spec) {
  const int64_t data = std::max<int64_t>(spec.mesh.data, spec.shard.zero > 0 && spec.mesh.data == 0 ? 2 : 1);
  return spec.mesh.tensor * spec.mesh.pipeline * data;
}

run::RunOutcome train_or_resume(const Library& library, const TrainOptions& options, comm::Communicator* ranks,
                                const std::function<bool()>& stop_requested) {
  const run::RunOptions run_options{.progress = options.quiet ? nullptr : stderr,
                                    .note = say,
                                    .stop_requested = stop_requested,
                                    .tensorboard = options.tensorboard,
                                    .copies = options.copies,
                                    .list_init = options.list_init,
                                    .pause_epochs = options.pause_epochs,
                                    .autotune = program::parse_autotune(options.autotune.value_or("off")),
                                    .ranks = ranks};
  if (options.copies && options.resume.empty() && options.run.empty())
    fail(ErrorKind::usage, "--copies: every host keeps the run directory under the same path; name it with --run DIR");
  if (options.resume.empty()) {
    spec::RunSpec spec;
    comm::on_all_ranks(ranks, "recipe", [&] { spec = spec_from(library, options, ranks == nullptr); });
    return run::start_run(library, spec, options.run, run_options);
  }
  std::vector<std::string> changes;
  comm::on_all_ranks(ranks, "options", [&] { changes = changes_of_resume(options); });
  return run::resume_run(library, options.resume, options.threads.value_or(0), run_options, changes);
}

int train_until_stopped(const Library& library, const TrainOptions& options, const std::string& program,
                        comm::Communicator* ranks, const std::function<bool()>& stop_requested) {
  const run::RunOutcome outcome = train_or_resume(library, options, ranks, stop_requested);
  const int stopped_code = outcome.paused ? 0 : train::kInterruptedExitCode;
  if (!comm::is_first(ranks)) return outcome.finished ? 0 : stopped_code;
  if (outcome.paused) {
    if (!options.quiet)
      say(fmt::format("paused after {} epochs; go on with `{}`", outcome.epochs_done,
                      resuming_command(outcome, program, ranks)));
    return 0;
  }
  if (!outcome.finished && outcome.directory.empty()) {
    say("interrupted before the first step: nothing was written");
    return train::kInterruptedExitCode;
  }
  if (!outcome.finished) {
    say(fmt::format("interrupted after step {}; go on with `{}`", outcome.steps_done,
                    resuming_command(outcome, program, ranks)));
    return train::kInterruptedExitCode;
  }
  if (options.json)
    fmt::print("{}", run::print_summary(outcome.summary));
  else
    print_result(outcome, library, program);
  return 0;
}

int train_command(const Library& library, const TrainOptions& options, const std::string& program,
                  comm::Communicator* ranks) {
  if (options.dry_run) {
    spec::RunSpec spec;
    comm::on_all_ranks(ranks, "options", [&] {
      if (!options.resume.empty()) fail(ErrorKind::usage, "--dry-run is for a new run; leave --resume away");
      if (ranks != nullptr) fail_dry_run_of_ranks(options, comm::number_of(ranks));
      spec = spec_from(library, options, /*is_alone=*/true);
      if (const int64_t wanted = ranks_wanted(spec); wanted > 1) fail_dry_run_of_ranks(options, wanted);
    });
    return dry_run(library, spec, options.run, options.list_init);
  }
  const train::InterruptGuard interrupt;
  return train_until_stopped(library, options, program, ranks, [&] { return interrupt.requested(); });
}

void add_options(CLI::App* command, TrainOptions* options, const Library& library) {
  command
      ->add_option("RECIPE", options->recipe,
                   "TOML file, or a name from `weft recipes`; what it leaves out has defaults")
      ->type_name("RECIPE|FILE");
  command->add_option("--model", options->model, "Model (see `weft models`)")->type_name("MODEL");
  command
      ->add_option("--data", options->data, data::dataset_forms(library.data) + " (`weft data --help` explains them)")
      ->type_name("SPEC");
  command->add_option("--init", options->init, spec::flag_help("init"))->type_name("FILE");
  command->add_option(
      "--init-head", options->init_head,
      "auto (default), or fresh: the last layer starts from the seed, though it is for as many classes");
  command->add_flag("--init-partial", options->init_partial,
                    "Take from --init what fits: tensors may be missing there, and others be there");
  command->add_flag("--list-init", options->list_init, "Name every tensor that --init gave or left");
  command
      ->add_option("--freeze", options->freeze,
                   "Parameters that are not trained, by name: a glob such as 'layer1.*'; their batch norms keep their "
                   "statistics; repeatable")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  command
      ->add_option("--group", options->groups,
                   "PATTERN:KEY=VALUE,...: keys of optimizer.groups for parameters by name, such as "
                   "'layer4.*:learning_rate_factor=0.1'; repeatable")
      ->type_name("PATTERN:KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--epochs", options->epochs, spec::flag_help("epochs"));
  command->add_option("--max-steps", options->max_steps, spec::flag_help("max_steps"));
  command->add_option("--max-time", options->max_time, spec::flag_help("max_time"));
  command
      ->add_option("--pause-after", options->pause_epochs,
                   "Save and stop after so many epochs, before the test data are measured; --resume goes on as if the "
                   "run had not stopped")
      ->type_name("EPOCHS")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command->add_option("--validation", options->validation, spec::flag_help("validation"));
  command->add_option("--batch", options->batch, spec::flag_help("batch"));
  command->add_option("--virtual-ranks", options->virtual_ranks, spec::flag_help("virtual_ranks"));
  command->add_option("--zero", options->zero, spec::flag_help("shard.zero"));
  command->add_option("--tensor", options->tensor, spec::flag_help("mesh.tensor"));
  command->add_option("--strategy", options->strategy,
                      "auto: weft chooses how ranks divide the work and what each of them keeps; default: manual");
  command->add_option("--memory-limit,--memory", options->memory_limit, spec::flag_help("memory_limit"));
  command->add_option("--offload", options->offload, spec::flag_help("offload"))->type_name("DIR");
  command->add_option("--cluster", options->cluster, spec::flag_help("cluster"))->type_name("FILE");
  command->add_option("--seed", options->seed, spec::flag_help("seed"));
  command->add_option("--threads", options->threads, spec::flag_help("threads"));
  command->add_flag("--copies", options->copies,
                    "On several hosts: each that does not see the first one's run directory keeps a full copy, from "
                    "which the run goes on when hosts are lost; `weft launch --restarts` sets it where it is needed");
  command->add_option("--workers", options->workers,
                      "Threads that make batches; default auto: as many as the steps need, by measurement");
  command->add_option("--cache-limit", options->cache_limit,
                      "Memory for decoded pictures of each split, such as 2GB; default auto: by what is free");
  command->add_option(
      "--max-bad-records", options->max_bad_records,
      "Damaged records of packed data (default 1%) or pictures of a folder (default none) that are passed over, a "
      "number or a share");
  command->add_option("--precision", options->precision, spec::flag_help("precision"));
  command
      ->add_option("--precision-of", options->precision_of,
                   "NAME=f32: an exception by node or op (see `weft graph`), such as softmax=f32; repeatable")
      ->allow_extra_args(false);
  command->add_option("--autotune", options->autotune, std::string(program::kAutotuneHelp) + "; default: off");
  command->add_option("--loss-scaling", options->loss_scaling,
                      "auto (default: dynamic in f16, else none), none, dynamic, or a number: the scale that stays");
  command->add_option("--run", options->run, "New run directory; default: runs/MODEL-DATA-N")->type_name("DIR");
  command->add_option("--set", options->set, "Any key of the recipe, such as optimizer.learning_rate=0.2; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--resume", options->resume,
                   "Go on in this run directory from its newest whole checkpoint; with --epochs, --max-steps, "
                   "--max-time or --set: "
                   "with these changes, also where it is finished")
      ->type_name("RUN");
  command->add_flag("--tensorboard", options->tensorboard,
                    "Write event files for `tensorboard --logdir RUN`; a resumed run goes on with them");
  command->add_flag("--dry-run", options->dry_run,
                    "Say what will happen and what it takes, from some measured steps; write nothing");
  command->add_flag("--quiet", options->quiet, "No progress line");
  command->add_flag("--json", options->json, "Print summary.json instead of the table");
}

/// CLI::ParseError where they are no words of `weft train`.
TrainOptions options_of_words(const Library& library, const std::vector<std::string>& words) {
  TrainOptions options;
  CLI::App app;
  add_options(&app, &options, library);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
  reversed.pop_back();                                              // "train"
  app.parse(reversed);
  return options;
}

}  // namespace

int train_by_words(const Library& library, const std::vector<std::string>& words, const std::string& program,
                   const std::function<bool()>& stop_requested) {
  return train_until_stopped(library, options_of_words(library, words), program, /*ranks=*/nullptr, stop_requested);
}

std::optional<spec::RunSpec> spec_of_words(const Library& library, const std::vector<std::string>& words) {
  try {
    const TrainOptions options = options_of_words(library, words);
    if (!options.resume.empty()) return std::nullopt;
    return spec_from(library, options, /*is_alone=*/false);
  } catch (const CLI::ParseError&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void add_train(CLI::App& app, Action& action, const Library& library, const std::string& program) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model and keep everything about it in a run directory");
  command->footer("Several processes train as one under `mpirun -n 4 weft train ...` or `srun weft train ...`.");
  add_options(command, options.get(), library);
  command->callback([options, program, &action, &library] {
    action = [options, program, &library] {
      return launch::on_launched_ranks(
          [&](comm::Communicator* ranks) { return train_command(library, *options, program, ranks); });
    };
  });
}

}  // namespace weft::cli
