// weft explain: where a run's step spends its time and its memory.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/base/seal.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/launch/launched_ranks.h"
#include "weft/program/arena_limit.h"
#include "weft/program/autotune.h"
#include "weft/program/run_data.h"
#include "weft/report/explain_json.h"
#include "weft/report/explain_page.h"
#include "weft/report/explain_text.h"
#include "weft/report/prediction_report.h"
#include "weft/report/rank_report.h"
#include "weft/report/rank_shares.h"
#include "weft/report/run_curves.h"
#include "weft/run/policies/policy_file.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/virtual_ranks.h"

namespace weft::cli {

namespace {

struct ExplainOptions {
  std::string run, precision, svg, html;
  std::optional<std::string> memory_limit, offload, autotune;
  int64_t steps = 10, rows = 20, batch = 0, threads = 0;
  std::vector<std::string> without;
  bool passes = false, memory = false, comm = false, json = false;
};

int64_t arena_limit_of(const std::string& plan_file) {
  try {
    const auto plan = nlohmann::json::parse(read_text(plan_file));
    check_seal(plan, plan_file);
    return plan.value("arena_limit_bytes", int64_t{0});
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::data,
         "'{}' is damaged: it does not say what the arena was given; put the original back, or give --memory-limit",
         plan_file);
  }
}

/// As in training where nothing says otherwise: what the arena was given then stands in the run's plan.
void keep_to_limit(program::StepCache& steps, int64_t other_bytes, const spec::RunSpec& spec,
                   const ExplainOptions& options, const run::RunDirectory& run) {
  std::error_code code;
  if (options.memory_limit || options.batch != 0 || !std::filesystem::exists(run.plan(), code)) {
    program::keep_to_memory_limit(steps, spec, other_bytes);
    return;
  }
  if (const int64_t limit = arena_limit_of(run.plan().string()); limit > 0) steps.limit_arena(limit);
}

/// The step of this rank.
program::StepChoice choose_step(const Library& library, const ExplainOptions& options, comm::Communicator* communicator,
                                const program::Note& note) {
  const int ranks = comm::number_of(communicator);
  if (options.comm && ranks == 1)
    fail(ErrorKind::usage,
         "--comm explains what several ranks exchange; start them with `mpirun -n 2 weft explain {} "
         "--comm`",
         options.run);
  const run::RunDirectory run = run::RunDirectory::open(options.run);
  spec::RunSpec spec = run.read_spec(library);
  spec.cost_profile = run.chosen_cost_profile(spec);
  spec::choose_threads(spec, options.threads);
  if (options.offload) spec::set_field(spec, "offload", *options.offload, "--offload", library);
  if (options.memory_limit) {
    spec::set_field(spec, "memory_limit", *options.memory_limit, "--memory-limit", library);
    spec::resolve(spec, library);
  }
  const spec::DataDescription data = run.read_data();
  spec::Stage stage = program::largest_stage(spec, data);
  if (options.batch > 0) stage = {.batch = options.batch, .accumulate = spec.accumulate};
  const step::RankStart start{.command = "weft explain " + quoted_for_shell(options.run), .sets_keys = false};
  step::require_mesh(spec, ranks, start);
  if (const int known = run.ranks(); note && known > 1 && known != ranks)
    note(fmt::format("this explains the step of {}, and the run had {} ranks; for that, {}",
                     ranks == 1 ? "one process" : fmt::format("{} ranks", ranks), known, start.of(known)));
  step::place_of(spec, communicator);  // what cannot be is said first
  const int64_t shards_of_rank = step::shards_of_rank(spec, ranks);
  if (spec.virtual_ranks > 0) {
    stage.batch /= shards_of_rank;
    stage.accumulate = shards_of_rank;
  }
  if (spec.balance.grains > 0) {  // as if shares were equal
    stage.accumulate = shards_of_rank;
    spec.batch = stage.batch = step::samples_at_a_time(spec, stage.batch, ranks);
  } else {
    spec.batch = stage.batch = launch::batch_of_rank(stage.batch, step::data_ranks(spec, ranks), "batch");
  }
  spec.accumulate = stage.accumulate;
  spec::choose_precision(spec, options.precision, *library.device.make({}), note);
  const auto tuning = [=, &library, chosen = options.autotune](int64_t threads) {
    return chosen ? program::tuning_of(library.device, program::parse_autotune(*chosen), threads, note)
                  : program::tuning_of_plan(run.plan(), note);
  };
  return {.spec = spec,
          .input = program::model_input(data, stage.shape()),
          .batches = spec.accumulate,
          .without = options.without,
          .tuning = tuning,
          .limit = [=](program::StepCache& steps,
                       int64_t other_bytes) { keep_to_limit(steps, other_bytes, spec, options, run); },
          .where_too_large = "explain it with a smaller --batch or on a machine with more"};
}

/// The plan alone: no step runs.
void explain_memory(program::PlannedStep& planned, const ExplainOptions& options) {
  const report::Explained explained = report::explain_plan(planned);
  fmt::print("{}", options.json ? report::memory_json(explained).dump(2) + "\n" : report::memory_text(explained));
  if (options.svg.empty()) return;
  const spec::RunSpec& spec = planned.spec();
  const Plan& plan = explained.compiled->plan;
  const std::string title = fmt::format("{}, batch {}, {}: arena {}, states and batch {}", spec.model.name, spec.batch,
                                        spec.precision, human_bytes(static_cast<double>(plan.arena_bytes)),
                                        human_bytes(static_cast<double>(plan.total_bytes() - plan.arena_bytes)));
  write_atomically(options.svg, report::draw_memory_svg(explained.compiled->graph, plan, title));
  say(fmt::format("wrote '{}'", options.svg));
}

/// What was measured, of which run.
std::string headline(const report::Explained& explained, const ExplainOptions& options, const spec::RunSpec& spec,
                     int ranks) {
  const data::DatasetInfo info = run::RunDirectory::open(options.run).read_data().info;
  const int64_t batches =
      spec.balance.grains > 0 ? spec.balance.grains : step::data_ranks(spec, ranks) * spec.accumulate;
  const int64_t batch = step::data_ranks(spec, ranks) * spec.batch, samples = batches * spec.batch;
  const double rate = static_cast<double>(samples * info.items_per_sample()) / explained.step_seconds;
  return fmt::format("{}: {} {}batch {}, {}, {}{} threads: {} per step, {:.0f} {}/s ({} steps measured now, medians)\n",
                     options.run, spec.model.name, spec.accumulate > 1 ? fmt::format("{} times ", spec.accumulate) : "",
                     batch, spec.precision, ranks > 1 ? fmt::format("{} ranks of ", ranks) : "", spec.threads,
                     human_duration(explained.step_seconds), rate, info.item(), options.steps);
}

/// What the run has chosen for itself.
std::string policy_text(const run::RunDirectory& directory) {
  const std::optional<run::Policies> policies = run::read_policies(directory.policy());
  return policies ? "\nchosen before the first step:\n" + run::describe_policies(*policies) : "";
}

/// What the run itself has measured.
std::string audit_text(const ExplainOptions& options, const spec::RunSpec& spec) {
  const run::RunDirectory directory = run::RunDirectory::open(options.run);
  return policy_text(directory) + report::audit_text(directory) +
         report::rank_shares_text(directory, spec.balance.grains);
}

void print_step(const Library& library, const report::Explained& explained, const ExplainOptions& options,
                const spec::RunSpec& spec, int ranks) {
  const run::RunDirectory run = run::RunDirectory::open(options.run);
  fmt::print("{}\n{}{}{}{}{}{}", headline(explained, options, spec, ranks),
             report::time_text(explained, static_cast<size_t>(options.rows)), report::memory_text(explained),
             audit_text(options, spec), report::prediction_text(run, explained),
             report::target_text(run, spec, library),
             report::noise_text(run, step::data_ranks(spec, ranks) * spec.accumulate * spec.batch));
}

/// Of ranks that train apart.
std::string averaging_text(const report::Explained& explained, const report::Averaging& mean) {
  const double steps = static_cast<double>(mean.period) * explained.step_seconds;
  const double seconds =
      mean.weight_seconds + (mean.seconds - mean.weight_seconds) / static_cast<double>(mean.states_every);
  const double percent = 100 * seconds / (steps + seconds);
  std::string text = fmt::format(
      "Ranks exchange nothing in their steps of {}. After {} of them, at most, they go on with the mean of their ",
      human_duration(explained.step_seconds), mean.period);
  if (mean.states_every == 1) return text + fmt::format("states, {:.1f} % of the time:\n\n", percent);
  return text +
         fmt::format("weights, {:.1f} % of the time. One mean in {} is of all states:\n\n", percent, mean.states_every);
}

void print_exchange(const report::Explained& explained, const passes::Ranks& ranks, bool of_grains) {
  if (const std::optional<report::Averaging>& mean = explained.averaging) {
    fmt::print("{}{}", averaging_text(explained, *mean),
               report::collectives_table(mean->collectives, mean->seconds, ranks, "mean"));
    return;
  }
  fmt::print("{}", report::collectives_table(explained.collectives, explained.step_seconds, ranks));
  if (explained.update == nullptr && explained.batches > 1)
    fmt::print("times are those of the last of the step's {} {}\n", explained.batches,
               of_grains ? "grains on a rank with an equal share, which exchanges the sums of all; the others exchange "
                           "nothing"
                         : "batches, which exchanges the sums of all their gradients; the others exchange the rest "
                           "likewise");
}

/// The same without a row for each collective.
std::string exchange_text(const report::Explained& explained, const passes::Ranks& ranks) {
  if (const std::optional<report::Averaging>& mean = explained.averaging)
    return averaging_text(explained, *mean) + report::exchange_summary(mean->collectives, mean->seconds, ranks, "mean");
  return report::exchange_summary(explained.collectives, explained.step_seconds, ranks);
}

void write_page(const Library& library, const report::Explained& explained, const ExplainOptions& options,
                const program::PlannedStep& step, int ranks, const std::string& of_ranks) {
  const std::vector<report::RunCurves> curves = report::read_curves(library, {options.run});
  report::ExplainPage page{.run = curves.front().name,
                           .headline = headline(explained, options, step.spec(), ranks),
                           .explained = explained,
                           .rows = static_cast<size_t>(options.rows),
                           .audit = audit_text(options, step.spec()),
                           .exchange = ranks > 1 ? exchange_text(explained, step.ranks()) + of_ranks : ""};
  if (!curves.front().empty()) page.curves = report::draw_curves(library, curves, {});
  write_atomically(options.html, report::explain_page(page));
  say(fmt::format("wrote '{}'", options.html));
}

nlohmann::ordered_json json_of(const report::Explained& explained, const run::RunDirectory& run,
                               const nlohmann::ordered_json& of_ranks) {
  nlohmann::ordered_json root = report::explained_json(explained);
  if (!of_ranks.empty()) root["ranks"] = of_ranks;
  root["predicted"] = report::prediction_json(run, explained);
  return root;
}

int explain_command(const Library& library, const ExplainOptions& options, comm::Communicator* ranks) {
  const std::string extension = std::filesystem::path(options.html).extension().string();
  if (!options.html.empty() && extension != ".html" && extension != ".htm")
    fail(ErrorKind::usage, "'{}' is no .html file; name one", options.html);
  const auto note = launch::note_of(ranks);
  const program::PlannedOnRanks planned =
      program::plan_on_ranks(library, ranks, note, [&] { return choose_step(library, options, ranks, note); });
  program::PlannedStep& step = *planned.step;
  const bool is_first = comm::is_first(ranks), is_of_plan = options.memory || !options.svg.empty();
  if (options.passes || is_of_plan) {
    if (is_first && options.passes) fmt::print("{}", report::passes_text(report::explain_plan(step)));
    const report::RankReport of_ranks = report::report_ranks(step, ranks);
    if (is_first && is_of_plan) explain_memory(step, options);
    if (is_of_plan && !options.json) fmt::print("{}", of_ranks.text);
    return 0;
  }
  comm::on_all_ranks(ranks, "memory of the step", [&] { step.require_memory(note); });
  const report::Explained explained = report::explain_steps(step, options.steps);
  const report::RankReport of_ranks = report::report_ranks(step, ranks, &explained);
  if (!is_first) return 0;
  if (!options.html.empty())
    write_page(library, explained, options, step, comm::number_of(ranks), of_ranks.text);
  else if (options.json)
    fmt::print("{}\n", json_of(explained, run::RunDirectory::open(options.run), of_ranks.ranks).dump(2));
  else if (options.comm)
    print_exchange(explained, step.ranks(), step.spec().balance.grains > 0);
  else
    print_step(library, explained, options, step.spec(), comm::number_of(ranks));
  if (options.html.empty() && !options.json) fmt::print("{}", of_ranks.text);
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "Show where a run's step spends its time and its memory");
  command->add_option("RUN", options->run, "Run directory")->type_name("RUN")->required();
  command->add_option("--steps", options->steps, "Steps to measure; default 10")->check(CLI::Range(1, 100000));
  command->add_option("--rows", options->rows, "Nodes to list, those furthest above their floor first; default 20")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--batch", options->batch, "Default: as in training")->check(CLI::Range(1, 65536));
  command->add_option("--threads", options->threads, "Default: as in training")->check(CLI::Range(0, 1024));
  command->add_option("--precision", options->precision, "f32, bf16, f16 or auto; default: as in training");
  command->add_option("--autotune", options->autotune,
                      std::string(program::kAutotuneHelp) + "; off: neither; default: as in training");
  command->add_option("--without", options->without, "Leave this pass out (see `weft graph --list-passes`); repeatable")
      ->type_name("PASS")
      ->allow_extra_args(false);
  CLI::Option* passes =
      command->add_flag("--passes", options->passes, "Only what each pass took and did; runs no step");
  CLI::Option* memory = command->add_flag("--memory", options->memory, "Only the memory of its plan; runs no step");
  memory->excludes(passes);
  CLI::Option* svg =
      command->add_option("--svg", options->svg, "Draw the memory into this file; as --memory, runs no step")
          ->type_name("FILE")
          ->excludes(passes);
  command->add_option("--memory-limit", options->memory_limit, "Such as 1.5GB; default: as in training");
  command
      ->add_option("--offload", options->offload,
                   "Directory for the file of activations that the limit leaves no place for; default: as in "
                   "training")
      ->type_name("DIR");
  CLI::Option* html =
      command
          ->add_option("--html", options->html,
                       "Write time, memory, curves and, of several ranks, what they exchange into this file: one page "
                       "that needs no other")
          ->type_name("FILE")
          ->excludes(passes)
          ->excludes(memory)
          ->excludes(svg);
  command->add_flag("--comm", options->comm, "Only what several ranks exchange: mpirun -n 2 weft explain RUN --comm")
      ->excludes(passes)
      ->excludes(memory)
      ->excludes(html);
  command->add_flag("--json", options->json, "Print JSON, every node and pass included")
      ->excludes(passes)
      ->excludes(html);
  command->callback([options, &action, &library] {
    action = [options, &library] {
      return launch::on_launched_ranks(
          [&](comm::Communicator* ranks) { return explain_command(library, *options, ranks); });
    };
  });
}

}  // namespace weft::cli
