#include "weft/cli/planned_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/say.h"
#include "weft/cli/recipe_input.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/device/op_times_file.h"
#include "weft/predict/loading.h"
#include "weft/program/run_data.h"
#include "weft/step/monitor.h"

namespace weft::cli {

namespace {

constexpr double kSampleSeconds = 0.3;

/// Of a part, in all evaluations of a run.
double evaluated_samples(const spec::RunSpec& spec, const program::RunData& data) {
  const double evaluations = spec.evaluation.every_epochs > 0
                                 ? std::max(1.0, spec.epochs / static_cast<double>(spec.evaluation.every_epochs))
                                 : 1;
  double samples = 0;
  if (data.validation) samples += evaluations * static_cast<double>(data.validation->size());
  if (data.test)
    samples += (step::measures_test_data_each_time(spec) ? evaluations : 1) * static_cast<double>(data.test->size());
  return samples;
}

predict::PlannedModel without_data(const Library& library, const PlanOptions& options, const spec::RunSpec& spec) {
  ModelChoice of_model = options.choice;
  of_model.model = spec.model.name;
  const models::ModelInput input = input_of(library, of_model, spec.batch);
  predict::PlannedModel model{.spec = spec,
                              .input =
                                  [input](const spec::StepShape& shape) {
                                    models::ModelInput resized = input;
                                    resized.batch = shape.batch;
                                    if (shape.image_height > 0 && resized.shape.size() == 3) {
                                      resized.shape[2] = resized.shape[2] * shape.image_height / resized.shape[1];
                                      resized.shape[1] = shape.image_height;
                                    }
                                    return resized;
                                  },
                              .samples = options.samples};
  if (!names_recipe(library, options.choice.model)) model.spec.data.clear();
  model.item = input.shape.size() == 3 ? "images" : "samples";
  return model;
}

}  // namespace

spec::RunSpec spec_of_plan(const Library& library, ModelChoice choice) {
  if (choice.threads == 0 && names_recipe(library, choice.model)) {
    spec::RunSpec given;
    apply_recipe(library, given, choice.model);
    choice.threads = given.threads;
  }
  return spec_of(library, choice, 16);
}

bool can_open_data(const Library& library, const spec::RunSpec& spec) {
  try {
    data::open_dataset(library.data, spec.data, data::Split::train);
    return true;
  } catch (const Error&) {
    return false;
  }
}

predict::PlannedModel planned_model(const Library& library, const PlanOptions& options, const spec::RunSpec& spec,
                                    bool elsewhere) {
  const bool is_recipe = names_recipe(library, options.choice.model);
  if (!is_recipe || !options.choice.input.empty() || options.choice.classes > 0)
    return without_data(library, options, spec);
  if (!can_open_data(library, spec)) {
    predict::PlannedModel model = without_data(library, options, spec);
    const models::ModelInput input = model.input(spec::StepShape(spec.batch));
    say(fmt::format(
        "the recipe's data '{}' are not here: assumed an input of {} and {} classes; --input, --classes and "
        "--samples say others",
        spec.data, to_string(Shape(input.shape)), input.classes));
    return model;
  }
  const program::RunData data = program::open_run_data(library, spec);
  predict::PlannedModel model{
      .spec = spec,
      .input = [description = data.description](
                   const spec::StepShape& shape) { return program::model_input(description, shape); },
      .samples = options.samples > 0 ? options.samples : data.training->size(),
      .evaluated_samples = evaluated_samples(spec, data),
      .item = std::string(data.description.info.item()),
      .items_per_sample = data.description.info.items_per_sample()};
  if (!elsewhere || options.searches())
    model.sample_seconds = predict::measure_loading(
        *data.training, program::training_loader_options(spec, data.description, {}, library), kSampleSeconds);
  return model;
}

predict::NodeTimes times_of_machine(const Library& library, const PlanOptions& options, int64_t threads) {
  const auto count = static_cast<int>(threads);
  OpTimes times = options.op_times.empty() ? predict::known_times(library.device, threads, say)
                                           : read_op_times(options.op_times, library.device.describe_machine(count));
  if (!times.rates())
    times.set_rates(library.device.make({.threads = count, .kernels = library.kernels})->measure_rates());
  return predict::measured_times(std::make_shared<const OpTimes>(std::move(times)), !options.interpolate);
}

predict::Place place_of(const Library& library, const PlanOptions& options, const machines::ClusterFile* cluster) {
  return {.cluster = cluster,
          .times_here = [&library, options](int64_t threads) { return times_of_machine(library, options, threads); }};
}

}  // namespace weft::cli
