#include "weft/cli/planned_model.h"

#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/base/say.h"
#include "weft/cli/recipe_input.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/device/op_times_file.h"
#include "weft/predict/loading.h"
#include "weft/predict/planned_model.h"
#include "weft/program/run_data.h"

namespace weft::cli {

namespace {

constexpr double kSampleSeconds = 0.3;

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

ModelChoice with_strategy(const PlanOptions& options) {
  ModelChoice choice = options.choice;
  if (!options.strategy.empty()) choice.set.push_back("strategy=" + options.strategy);
  return choice;
}

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
  predict::PlannedModel model = predict::planned_model(library, spec, data);
  if (options.samples > 0) model.samples = options.samples;
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
