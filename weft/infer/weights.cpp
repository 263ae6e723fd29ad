#include "weft/infer/weights.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/number_list.h"
#include "weft/base/say.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/formats/image_folder.h"
#include "weft/data/formats/picture_options.h"
#include "weft/data/open_dataset.h"
#include "weft/ops/ops.h"
#include "weft/program/driver.h"
#include "weft/program/run_data.h"
#include "weft/run/initial_weights.h"
#include "weft/run/weights_file.h"
#include "weft/spec/compile_options.h"
#include "weft/step/step.h"
#include "weft/step/test_time_views.h"
#include "weft/tensor/safetensors.h"

namespace weft::infer {

namespace {

models::Model inference_model(const Library& library, const run::LoadedRun& run, int64_t batch) {
  return build_model(library, run.spec.model.name, program::model_input(run.data, batch), run.spec.model.options,
                     models::Mode::inference);
}

std::vector<float> parse_statistics(const std::string& text, const std::string& option, int64_t channels, float above) {
  const std::optional<std::vector<float>> numbers = parse_number_list<float>(text);
  if (numbers && static_cast<int64_t>(numbers->size()) == channels &&
      std::all_of(numbers->begin(), numbers->end(), [&](float value) { return value > above && value < 1e6f; }))
    return *numbers;
  fail(ErrorKind::usage, "{} '{}': wants {} numbers{}, one per channel, such as 0.485,0.456,0.406", option, text,
       channels, above == 0 ? " above 0" : "");
}

/// (C,H,W)
std::vector<int64_t> parse_input(const std::string& text) {
  const std::optional<std::vector<int64_t>> dims = parse_number_list<int64_t>(text);
  if (dims && dims->size() == 3 &&
      std::all_of(dims->begin(), dims->end(), [](int64_t dim) { return dim > 0 && dim < 1'000'000; }))
    return *dims;
  fail(ErrorKind::usage, "--input '{}': wants 3 whole numbers above 0, such as 3,224,224", text);
}

/// How many rows the last layer of the model has in the file.
int64_t classes_of_head(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input,
                        const run::WeightsFile& file) {
  const models::Model model = build_model(library, spec.model.name, input, spec.model.options, models::Mode::inference);
  const std::string head = run::head_layer(model.parameters) + "weight";
  for (const auto& [name, shape] : file.shapes)
    if (name == head || name.ends_with("." + head)) return shape.rank() > 0 ? shape[0] : 0;
  return 0;
}

/// Images as the model reads them, from what the file, the user and the model itself say.
spec::DataDescription described_images(const Library& library, const spec::RunSpec& spec, const WeightsChoice& choice,
                                       const run::WeightsFile& file) {
  models::ModelInput input = models::find_model(library.models, spec.model.name).default_input;
  if (!file.input.empty()) input.shape = file.input;
  if (!choice.input.empty()) input.shape = parse_input(choice.input);
  spec::DataDescription description;
  data::DatasetInfo& info = description.info;
  info.name = choice.weights;
  info.classes = file.classes > 0 ? file.classes : classes_of_head(library, spec, input, file);
  if (input.shape.size() != 3 || info.classes == 0)
    fail(ErrorKind::usage, "'{}' does not say what '{}' reads; add --data: data like those that it was trained on",
         choice.weights, spec.model.name);
  info.sample_shape = Shape(input.shape);
  if (file.class_names.size() == static_cast<size_t>(info.classes)) info.class_names = file.class_names;
  info.decoded = true;
  data::PictureSettings settings;
  settings.size = std::max(input.shape[1], input.shape[2]);
  settings.resize = data::usual_resize(std::min(input.shape[1], input.shape[2]));
  settings.channels = input.shape[0];
  settings.exact = file.decodes_exactly;
  settings.resize = std::max(settings.resize, settings.size);
  info.encoding = data::print_encoding(settings, info.class_names);
  return description;
}

}  // namespace

run::LoadedRun run_of_weights(const Library& library, const WeightsChoice& choice) {
  const run::WeightsFile file = run::describe_weights(choice.weights);
  run::LoadedRun run;
  if (!choice.model.empty()) spec::set_field(run.spec, "model.name", choice.model, "--model", library);
  if (!choice.data.empty()) spec::set_field(run.spec, "data", choice.data, "--data", library);
  spec::set_field(run.spec, "threads", choice.threads, "--threads", library);
  for (const std::string& assignment : choice.set) spec::set_from_text(run.spec, assignment, library);
  for (const std::string& line : run::take_model(run.spec, file)) say(line);
  if (run.spec.model.name.empty())
    fail(ErrorKind::usage, "'{}' does not say which model it is of; add --model (`weft models` lists them)",
         choice.weights);
  spec::resolve(run.spec, library);
  spec::choose_automatic_precision(run.spec, *library.device.make({}));
  if (file.data) {
    run.data = *file.data;
  } else if (choice.data.empty()) {
    run.data = described_images(library, run.spec, choice, file);
  } else {
    spec::RunSpec opened = run.spec;
    opened.batch = 1;  // nothing is trained: any number of samples will do
    if (file.decodes_exactly && data::decodes_pictures(library.data, opened.data) &&
        !data::has_option(opened.data, data::kDecodeOption))
      opened.data = run.spec.data = data::with_option(opened.data, data::kDecodeOption, "exact");
    run.data = program::open_run_data(library, opened).description;
    if (file.class_names.size() == static_cast<size_t>(run.data.info.classes))
      run.data.info.class_names = file.class_names;
  }
  if (choice.data.empty()) run.spec.data = run.data.info.name;
  const data::DatasetInfo& info = run.data.info;
  const bool fits =
      info.sample_dtype == DType::u8 && static_cast<int64_t>(file.statistics.mean.size()) == info.sample_shape[0];
  if (fits) run.data.statistics = file.statistics;
  replace_weights(library, run, choice.weights);
  return run;
}

void require_statistics(const run::LoadedRun& run) {
  if (run.data.info.sample_dtype != DType::u8) return;
  const auto channels = static_cast<size_t>(run.data.info.sample_shape[0]);
  if (run.data.statistics.mean.size() == channels && run.data.statistics.deviation.size() == channels) return;
  fail(ErrorKind::usage,
       "'{}' does not say by which mean and deviation its pixels were normalised; add --mean and --deviation, as in "
       "its training (of most that come with ImageNet: 0.485,0.456,0.406 and 0.229,0.224,0.225), or --data",
       run.checkpoint);
}

void replace_weights(const Library& library, run::LoadedRun& run, const std::string& weights) {
  const models::Model model = inference_model(library, run, 1);
  run.state = State();
  run::load_weights(run.state, model.parameters, weights);
  run.checkpoint = weights;
}

void set_statistics(run::LoadedRun& run, const std::string& mean, const std::string& deviation) {
  if (mean.empty() && deviation.empty()) return;
  const data::DatasetInfo& info = run.data.info;
  if (info.sample_dtype != DType::u8)
    fail(ErrorKind::usage, "--mean and --deviation are of images, '{}' holds {}; leave them away", info.name,
         info.item());
  const int64_t channels = info.sample_shape[0];
  if (!mean.empty()) run.data.statistics.mean = parse_statistics(mean, "--mean", channels, -1e6f);
  if (!deviation.empty()) run.data.statistics.deviation = parse_statistics(deviation, "--deviation", channels, 0);
}

void write_logits(const Library& library, run::LoadedRun& run, const data::Dataset& dataset,
                  const std::filesystem::path& path) {
  const std::unique_ptr<Device> device =
      library.device.make({.threads = static_cast<int>(run.spec.threads), .kernels = library.kernels});
  const std::vector<data::View> views = data::views_of(run.spec.evaluation.tta);
  program::Program program(
      [&](const spec::StepShape& shape) {
        models::Model model = inference_model(library, run, shape.batch * static_cast<int64_t>(views.size()));
        step::average_views(model, views, shape.batch);
        const bool steps_first = run.data.info.target_kind() == data::TargetKind::text;  // [T,N,classes]
        model.graph.add_output("logits",
                               steps_first ? ops::transpose(model.graph, model.logits, {1, 0, 2}) : model.logits);
        return std::move(model.graph);
      },
      *device, spec::compile_options(run.spec, *device));
  data::Loader loader(dataset, program::evaluation_loader_options(run.spec, run.data));
  std::optional<step::ViewedBatch> viewed;
  if (views.size() > 1) viewed.emplace(views, dataset.info(), std::min(run.spec.evaluation.batch, dataset.size()));
  loader.start(0, 0, 1);
  program::Driver driver(program, run.state);
  Tensor all;
  int64_t done = 0;
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    const data::Batch& batch = loader.next();
    if (driver.shape() != spec::StepShape(batch.count)) driver.select(batch.count);
    driver.bind_batch(viewed ? viewed->show(batch) : batch);
    driver.run();
    const Tensor logits = driver.executor().output("logits");
    const int64_t per_sample = logits.elements() / batch.count;
    if (done == 0) all = Tensor(DType::f32, Shape{dataset.size(), per_sample});
    std::memcpy(all.data_as<float>() + done * per_sample, logits.data(),
                static_cast<size_t>(logits.elements()) * sizeof(float));
    done += batch.count;
  }
  SafetensorsFile file;
  file.tensors.emplace("logits", std::move(all));
  write_safetensors(path, file);
}

}  // namespace weft::infer
