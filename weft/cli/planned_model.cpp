#include "weft/cli/planned_model.h"

#include <fmt/ranges.h>

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
  spec::RunSpec own = spec;  // whose batch becomes that of the largest stage
  const RecipeInput found = input_of_recipe(library, options.choice, own);
  if (!found.note.empty())
    say(found.note + (options.samples > 0 ? "" : "; --samples N says how many there are to train on"));
  const models::ModelInput& input = found.input;
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
                                    bool measures_loading) {
  const bool is_recipe = names_recipe(library, options.choice.model);
  if (!is_recipe || !options.choice.input.empty() || options.choice.classes > 0 || !can_open_data(library, spec))
    return without_data(library, options, spec);
  const program::RunData data = program::open_run_data(library, spec);
  predict::PlannedModel model = predict::planned_model(library, spec, data);
  if (options.samples > 0) model.samples = options.samples;
  if (measures_loading)
    model.sample_seconds = predict::measure_loading(
        *data.training, program::training_loader_options(spec, data.description, {}, library), kSampleSeconds);
  return model;
}

void note_unknown_cores(const predict::PlannedModel& model, const std::vector<machines::ClusterFile>& clusters) {
  if (model.sample_seconds <= 0) return;
  std::vector<std::string> files;
  for (const machines::ClusterFile& cluster : clusters)
    if (cluster.cores_per_host == 0) files.push_back(fmt::format("'{}'", cluster.file));
  if (!files.empty())
    say(fmt::format(
        "the time of loading is left out: machine.cores_per_host is missing in {}; write it there, or into a "
        "copy of the file",
        fmt::join(files, ", ")));
}

predict::NodeTimes times_of_machine(const Library& library, const PlanOptions& options,
                                    const predict::HostCores& host) {
  const auto count = static_cast<int>(host.threads);
  OpTimes times = options.op_times.empty() ? predict::known_times(library.device, host, say)
                                           : read_op_times(options.op_times, library.device.describe_machine(count));
  if (!times.rates())
    times.set_rates(library.device.make({.threads = count, .kernels = library.kernels})->measure_rates());
  return predict::measured_times(std::make_shared<const OpTimes>(std::move(times)), !options.interpolate);
}

predict::Place place_of(const Library& library, const PlanOptions& options, const machines::ClusterFile* cluster) {
  return {.cluster = cluster, .times_here = [&library, options](const predict::HostCores& host) {
            return times_of_machine(library, options, host);
          }};
}

}  // namespace weft::cli
