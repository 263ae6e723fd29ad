// weft predict: the classes of images, their pixels, rows and lines, the values of rows, the text in pictures, what
// follows a text or what it becomes.
#include <CLI/CLI.hpp>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/infer/input_files.h"
#include "weft/infer/prediction.h"

namespace weft::cli {

namespace {

int predict_command(const Library& library, const infer::PredictOptions& given) {
  infer::PredictOptions options = given;
  run::LoadedRun run = run::load_run(options.run, options.checkpoint, options.threads, library);
  if (run.data.info.sample_dtype == DType::u8) options.files = infer::expand_files(options.files);
  if (options.checkpoint == "auto" && spec::has_validation(run.spec)) say(fmt::format("weights of {}", run.checkpoint));
  infer::PredictionModel model(library, std::move(run), options.precision);
  const data::DatasetInfo& info = model.data().info;
  if (!options.masks.empty() && info.target_kind() != data::TargetKind::pixel_classes)
    fail(ErrorKind::usage, "--masks is for models that name the class of each pixel; leave it away");
  const TaskEntry& task = task_entry(library, info.task);
  if (!task.predict)
    fail(ErrorKind::usage,
         "the task '{}' has no predictions of its own; `weft eval {} --logits FILE` writes its logits", task.name,
         options.run);
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
  command->add_option("RUN", options->run, "Run directory")->type_name("RUN")->required();
  command
      ->add_option(
          "FILE", options->files,
          "What the run was trained on: PNG, JPEG, PGM or PPM images, folders of them, patterns in quotes; tables "
          "(FILE.csv or csv:FILE?OPTIONS), "
          "with or without the label; beginnings of texts; files with a text to translate or name on each line "
          "(- for standard input)")
      ->type_name("FILE")
      ->required();
  command->add_option("--top", options->top, "Classes to show")->check(CLI::Range(1, 1000000));
  command->add_option("--length", options->length, "Characters to write behind a text; default 200")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--temperature", options->temperature, "Of their draw, 0: always the likeliest; default 0.8")
      ->check(CLI::Range(0.0, 100.0));
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
