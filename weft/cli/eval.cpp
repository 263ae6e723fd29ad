// weft eval: accuracy and loss of a run's weights on a data set.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/data/dataset/class_names.h"
#include "weft/infer/weights.h"
#include "weft/program/process_memory.h"
#include "weft/program/run_data.h"
#include "weft/report/class_report.h"
#include "weft/run/loaded_run.h"
#include "weft/spec/compile_options.h"
#include "weft/step/metrics/entries.h"
#include "weft/step/step.h"
#include "weft/step/test_time_views.h"
#include "weft/train/evaluate.h"

namespace weft::cli {

namespace {

struct EvalOptions {
  std::string run, data, checkpoint = "auto", weights, model, mean, deviation, logits, confusion, precision, tta;
  std::vector<std::string> set;
  int64_t batch = 0, threads = 0;
  bool json = false;
};

std::string in_words(const TaskEntry& task, const std::vector<MetricEntry>& metrics, const train::Evaluation& result) {
  std::string more;
  for (size_t at = 0; at < metrics.size(); ++at) {
    const bool of_task = std::find(task.metrics.begin(), task.metrics.end(), metrics[at].name) != task.metrics.end();
    if (!task.in_words || !of_task)
      more += fmt::format("{} {}, ", metrics[at].label, shown(metrics[at], result.metrics[at].value));
  }
  return more + (task.in_words ? task.in_words(result.loss, result.metrics) : fmt::format("loss {:.4f}", result.loss));
}

/// Which of the data were measured.
std::string measured_part(const program::EvaluationData& measured) {
  if (measured.split == data::Split::test) return "test";
  if (measured.own) return "training";
  return "all";
}

std::string views_in_words(const std::string& tta) {
  const size_t views = data::views_of(tta).size();
  return views == 1 ? "" : fmt::format(", mean of {} views", views);
}

void print_json(const EvalOptions& options, const run::LoadedRun& run, const program::EvaluationData& measured,
                const train::Evaluation& result, const std::optional<report::ClassReport>& classes) {
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json root = {{"run", options.run},
                                 {"checkpoint", run.checkpoint},
                                 {"data", measured.spec},
                                 {"split", measured_part(measured)},
                                 {"tta", run.spec.evaluation.tta},
                                 {"samples", result.samples}};
  for (const auto& [name, value] : result.metrics) root[name] = number(value);
  for (size_t at = 0; at < result.of_values.size(); ++at) {
    nlohmann::ordered_json one = {{"name", data::class_name(run.data.info.class_names, static_cast<int64_t>(at))}};
    for (const auto& [name, value] : result.of_values[at]) one[name] = number(value);
    root["values"].push_back(std::move(one));
  }
  root["loss"] = result.loss;
  root["seconds"] = result.seconds;
  if (classes) classes->add_to(root);
  fmt::print("{}\n", root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

/// A line for each of several values, by the name of its column.
std::string table_of_values(const data::DatasetInfo& info, const std::vector<MetricEntry>& metrics,
                            const std::vector<MetricValues>& of_values) {
  std::vector<Column> columns = {{"value"}};
  std::vector<const MetricEntry*> shown_metrics;
  for (const MetricEntry& metric : metrics) {
    const auto is_it = [&](const MetricValue& value) { return value.name == metric.name; };
    if (std::none_of(of_values.front().begin(), of_values.front().end(), is_it)) continue;
    columns.push_back({metric.label, Align::right});
    shown_metrics.push_back(&metric);
  }
  Table table(columns);
  for (size_t at = 0; at < of_values.size(); ++at) {
    std::vector<std::string> row = {data::class_name(info.class_names, static_cast<int64_t>(at))};
    for (const MetricEntry* metric : shown_metrics) {
      const std::optional<double> value = find_metric(of_values[at], metric->name);
      row.push_back(value ? fmt::format("{:.5g}", *value) : "-");
    }
    table.add_row(std::move(row));
  }
  return table.text();
}

/// Tasks of one's own may take values for something else, such as classes that do not exclude each other.
bool predicts_quantities(const data::DatasetInfo& info) { return info.task == "regression"; }

/// Also how far off they are in the mean, which training does not measure.
void measure_distances(spec::RunSpec& spec, const data::DatasetInfo& info) {
  if (predicts_quantities(info)) spec.metrics.names += " mae";
}

/// A run directory, a file of weights, or the first with the weights of the second.
run::LoadedRun evaluated_run(const Library& library, const EvalOptions& options) {
  if (options.run.empty()) {
    if (options.weights.empty())
      fail(ErrorKind::usage, "nothing to evaluate: give a run directory, or --weights FILE with --model and --data");
    if (options.data.empty())
      fail(ErrorKind::usage,
           "--weights without a run directory wants --model and --data: what to measure, and on what");
    return infer::run_of_weights(library, {.weights = options.weights,
                                           .model = options.model,
                                           .data = options.data,
                                           .set = options.set,
                                           .threads = options.threads});
  }
  if (!options.model.empty() || !options.set.empty())
    fail(ErrorKind::usage, "--model and --set go with --weights alone; '{}' says which model it is", options.run);
  run::LoadedRun run = run::load_run(options.run, options.checkpoint, options.threads, library);
  if (!options.weights.empty()) infer::replace_weights(library, run, options.weights);
  return run;
}

/// Whether each target is one of several classes, told from what stands beside it alone.
bool names_classes(const data::DatasetInfo& info) {
  return info.target_kind() == data::TargetKind::sample_class || info.target_kind() == data::TargetKind::pixel_classes;
}

/// Ready to count where the run predicts classes. Error(usage) where it does not and a file of them is asked for.
std::optional<report::ClassReport> empty_report(const EvalOptions& options, const run::LoadedRun& run,
                                                const Graph& step) {
  const data::DatasetInfo& info = run.data.info;
  if (names_classes(info) && step::has_output(step, "predicted"))
    return report::ClassReport{train::ConfusionMatrix(info.classes), info.class_names};
  if (!options.confusion.empty())
    fail(ErrorKind::usage, "--confusion counts classes, and '{}' on '{}' predicts none; leave it away",
         run.spec.model.name, info.name);
  return std::nullopt;
}

int eval_command(const Library& library, const EvalOptions& options) {
  run::LoadedRun run = evaluated_run(library, options);
  infer::set_statistics(run, options.mean, options.deviation);
  infer::require_statistics(run);
  if (options.batch > 0) run.spec.evaluation.batch = options.batch;
  if (!options.tta.empty()) run.spec.evaluation.tta = options.tta;
  measure_distances(run.spec, run.data.info);
  const std::string data_spec = options.data.empty() ? run.spec.data : options.data;
  const program::EvaluationData measured = program::open_evaluation_data(library, data_spec, run.spec, run.data);
  const auto& dataset = measured.dataset;
  const data::DatasetInfo &info = dataset->info(), &trained = run.data.info;
  if (info.sample_shape != trained.sample_shape || info.sample_dtype != trained.sample_dtype ||
      info.task != trained.task || info.classes > trained.classes)
    fail(ErrorKind::shape, "'{}' has {} {} of {} classes, the model of '{}' reads {} {} of {}; choose other data",
         data_spec, info.item(), to_string(info.sample_shape), info.classes, options.run, trained.item(),
         to_string(trained.sample_shape), trained.classes);
  program::require_equal_targets(trained, info);
  if (!info.note.empty()) say(info.note);
  const std::unique_ptr<Device> device =
      library.device.make({.threads = static_cast<int>(run.spec.threads), .kernels = library.kernels});
  spec::choose_precision(run.spec, options.precision, *device, say);
  program::Program program(
      [&](const spec::StepShape& shape) {
        return step::build_evaluation_step(library, run.spec, program::model_input(run.data, shape),
                                           {.predictions = names_classes(info)});
      },
      *device, spec::compile_options(run.spec, *device));
  const int64_t batch = run.spec.evaluation.batch, samples = dataset->size();
  int64_t state_bytes = 0;
  for (const int64_t size : {std::min(batch, samples), samples % batch})
    if (size > 0) state_bytes = program.compiled(size).plan.state_bytes;
  const data::LoaderOptions loader_options = program::evaluation_loader_options(
      run.spec, {.info = info, .statistics = run.data.statistics, .samples = dataset->size()});
  program::require_memory(run.spec.model.name, batch,
                          program.arena_bytes() + state_bytes + program::loader_bytes(loader_options, run.data) +
                              step::ViewedBatch::bytes(run.spec.evaluation.tta, info, std::min(batch, samples)),
                          "choose a smaller --batch");
  data::Loader loader(*dataset, loader_options);
  const std::vector<MetricEntry> metrics = step::metrics_of(library, run.spec.metrics, info.task);
  std::optional<report::ClassReport> classes =
      empty_report(options, run, program.compiled(std::min(batch, samples)).graph);
  train::Evaluation result = train::evaluate(program, run.state, loader,
                                             {.metrics = metrics,
                                              .metric_options = run.spec.metrics,
                                              .confusion = classes ? &classes->matrix : nullptr,
                                              .tta = run.spec.evaluation.tta});
  if (!predicts_quantities(info)) result.of_values.clear();
  if (!options.confusion.empty()) classes->write_csv(options.confusion);
  if (!options.logits.empty()) infer::write_logits(library, run, *dataset, options.logits);
  if (options.json) {
    print_json(options, run, measured, result, classes);
  } else {
    const std::string part = measured_part(measured);
    fmt::print("{} on {} samples{} of {}: {} ({})\n", run.checkpoint, result.samples,
               part == "all" ? "" : fmt::format(" (the {} split)", part),
               measured.spec + views_in_words(run.spec.evaluation.tta),
               in_words(task_entry(library, info.task), metrics, result), human_duration(result.seconds));
    if (classes) fmt::print("\n{}", classes->text());
    if (!result.of_values.empty()) fmt::print("\n{}", table_of_values(run.data.info, metrics, result.of_values));
  }
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Measure a run's accuracy on its test data or on other data");
  command->add_option("RUN", options->run, "Run directory; not needed with --weights, --model and --data")
      ->type_name("RUN");
  command->add_option("--data", options->data, "Default: the test data of the run; without one, needed")
      ->type_name("SPEC");
  command->add_option("--checkpoint", options->checkpoint, kCheckpointHelp)->check(CLI::IsMember(checkpoint_names()));
  command->add_option("--weights", options->weights, "Safetensors file with PyTorch's names, instead of a checkpoint")
      ->type_name("FILE");
  command
      ->add_option("--model", options->model,
                   "Without a run: the model of the weights (see `weft models`); default: as the file says")
      ->type_name("MODEL");
  command->add_option("--set", options->set, "Without a run: a key of a recipe, such as model.width=32; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--mean", options->mean, "Of each channel, of pixels in 0 to 1; default: as in training");
  command->add_option("--deviation", options->deviation, "Standard deviations likewise");
  command
      ->add_option("--confusion", options->confusion,
                   "Write how often each class (of samples or pixels) was taken for each other one to this CSV file")
      ->type_name("FILE");
  command->add_option("--logits", options->logits, "Write all logits to this safetensors file")->type_name("FILE");
  command->add_option("--batch", options->batch, "Samples at a time; default: as in training")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--tta", options->tta,
                   "Views of each image whose mean counts: none, flip (mirrored too) or "
                   "multicrop (also moved by a pixel); default: as in training")
      ->check(CLI::IsMember(data::tta_names()));
  command->add_option("--threads", options->threads, "Default: as in training")->check(CLI::Range(0, 1024));
  command->add_option("--precision", options->precision, "f32, bf16, f16 or auto; default: as in training");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return eval_command(library, *options); }; });
}

}  // namespace weft::cli
