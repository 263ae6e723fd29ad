// weft predict: the classes of images, their pixels, rows and lines, the values of rows, the text in pictures, what
// follows a text or what it becomes.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/cli/real_number.h"
#include "weft/infer/input_files.h"
#include "weft/infer/prediction.h"
#include "weft/infer/weights.h"

namespace weft::cli {

namespace {

/// Without a run the first name is that of a file. Error(usage) where nothing is left to predict.
void sort_names(infer::PredictOptions& options) {
  std::error_code code;
  const bool is_run = std::filesystem::exists(std::filesystem::path(options.run) / "spec.toml", code);
  if (!options.weights.empty() && !options.run.empty() && !is_run) {
    options.files.insert(options.files.begin(), options.run);
    options.run.clear();
  }
  if (options.files.empty() && !options.data.empty()) options.files.push_back(options.data);
  if (options.weights.empty() && options.run.empty())
    fail(ErrorKind::usage, "nothing to predict with: give a run directory, or --weights FILE");
  if (options.files.empty()) fail(ErrorKind::usage, "nothing to predict: name files, or data by --data");
}

/// A run directory, a file of weights, or the first with the weights of the second.
run::LoadedRun predicting_run(const Library& library, const infer::PredictOptions& options) {
  if (options.run.empty())
    return infer::run_of_weights(library, {.weights = options.weights,
                                           .model = options.model,
                                           .data = options.data,
                                           .input = options.input,
                                           .set = options.set,
                                           .threads = options.threads});
  if (!options.model.empty() || !options.set.empty() || !options.input.empty())
    fail(ErrorKind::usage, "--model, --input and --set go with --weights alone; '{}' says which model it is",
         options.run);
  run::LoadedRun run = run::load_run(options.run, options.checkpoint, options.threads, library);
  if (!options.weights.empty()) infer::replace_weights(library, run, options.weights);
  return run;
}

int predict_command(const Library& library, const infer::PredictOptions& given) {
  infer::PredictOptions options = given;
  sort_names(options);
  run::LoadedRun run = predicting_run(library, options);
  infer::set_statistics(run, options.mean, options.deviation);
  infer::require_statistics(run);
  if (run.data.info.sample_dtype == DType::u8) options.files = infer::expand_files(options.files);
  if (options.weights.empty() && options.checkpoint == "auto" && spec::has_validation(run.spec))
    say(fmt::format("weights of {}", run.checkpoint));
  infer::PredictionModel model(library, std::move(run), options.precision);
  const data::DatasetInfo& info = model.data().info;
  if (!options.masks.empty() && info.target_kind() != data::TargetKind::pixel_classes)
    fail(ErrorKind::usage, "--masks is for models that name the class of each pixel; leave it away");
  const TaskEntry& task = task_entry(library, info.task);
  if (!task.predict)
    fail(ErrorKind::usage,
         "the task '{}' has no predictions of its own; `weft eval {} --logits FILE` writes its logits", task.name,
         options.run.empty() ? "--weights " + options.weights : options.run);
  if (const std::string* spec = model.find_data(options.files); spec != nullptr && !task.predicts_data)
    fail(ErrorKind::usage,
         "'{}' names data, and a model for {} predicts files; name them, or measure it by `weft eval {} "
         "--data {}`",
         *spec, task.name, options.run, *spec);
  return task.predict(model, options);
}

}  // namespace

void add_predict(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<infer::PredictOptions>();
  CLI::App* command = app.add_subcommand(
      "predict",
      "Name the likeliest classes of images, pixels, rows or lines of text, read, translate or continue text");
  command->add_option("RUN", options->run, "Run directory; not needed with --weights")->type_name("RUN");
  command
      ->add_option(
          "FILE", options->files,
          "What the run was trained on: PNG, JPEG, PGM or PPM images, folders of them, patterns in quotes; tables "
          "(FILE.csv or csv:FILE?OPTIONS), "
          "with or without the label; beginnings of texts; files with a text to translate or name on each line "
          "(- for standard input)")
      ->type_name("FILE");
  command
      ->add_option("--weights", options->weights,
                   "Safetensors file with PyTorch's names, instead of a checkpoint or of a run")
      ->type_name("FILE");
  command
      ->add_option("--model", options->model,
                   "Without a run: the model of the weights (see `weft models`); default: as the file says")
      ->type_name("MODEL");
  command
      ->add_option("--data", options->data,
                   "Without a run: data like those that the weights were trained on (classes, sizes, mean and "
                   "deviation); predicted where no FILE is named; default: as the file says")
      ->type_name("SPEC");
  command
      ->add_option("--input", options->input,
                   "Without a run: the images that the model reads, such as 3,224,224; default: as the file says, "
                   "or the model's own")
      ->type_name("C,H,W");
  command->add_option("--mean", options->mean, "Of each channel, of pixels in 0 to 1; default: as in training");
  command->add_option("--deviation", options->deviation, "Standard deviations likewise");
  command->add_option("--set", options->set, "Without a run: a key of a recipe, such as model.width=32; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--top", options->top, "Classes to show")->check(CLI::Range(1, 1000000));
  command->add_option("--length", options->length, "Characters to write behind a text; default 200")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--temperature", options->sampling.temperature,
                   "Of their draw, 0: always the likeliest; default 0.8")
      ->check(real_number_in(0, 100));
  command->add_option("--top-k", options->sampling.top_k, "Draw among so many of the likeliest; default: among all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  command
      ->add_option("--top-p", options->sampling.top_p,
                   "Draw among the fewest likely ones that together have this probability; default 1")
      ->check(real_number_in(1e-6, 1));
  command->add_option("--seed", options->seed, "Of their draw")->check(CLI::NonNegativeNumber);
  command->add_option("--masks", options->masks, "Folder for masks NAME.png, where each pixel gets a class")
      ->type_name("DIR");
  command->add_option("--checkpoint", options->checkpoint, kCheckpointHelp)->check(CLI::IsMember(checkpoint_names()));
  command->add_option("--threads", options->threads, "Default: as in training")->check(CLI::Range(0, 1024));
  command->add_option("--precision", options->precision, "f32, bf16, f16 or auto; default: as in training");
  command
      ->add_option("--format", options->format,
                   "text (default), json, jsonl (a line each) or csv (the likeliest class)")
      ->check(CLI::IsMember({"text", "json", "jsonl", "csv"}));
  command->add_flag_callback(
      "--json", [options] { options->format = "json"; }, "Print JSON: --format json");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return predict_command(library, *options); }; });
}

}  // namespace weft::cli
