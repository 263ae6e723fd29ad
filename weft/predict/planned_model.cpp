#include "weft/predict/planned_model.h"

#include <algorithm>
#include <cmath>

#include "weft/step/monitor.h"

namespace weft::predict {

namespace {

/// By evaluations at the ends of epochs and of the run.
double evaluated_samples(const spec::RunSpec& spec, const program::RunData& data) {
  const double evaluations =
      spec.evaluation.every_epochs > 0
          ? std::max(1.0, std::ceil(spec.epochs / static_cast<double>(spec.evaluation.every_epochs)))
          : 1;
  double samples = 0;
  if (data.validation) samples += evaluations * static_cast<double>(data.validation->size());
  if (data.test)
    samples += (step::measures_test_data_each_time(spec) ? evaluations : 1) * static_cast<double>(data.test->size());
  return samples;
}

/// By those after every so many steps, which look at the validation part alone.
double evaluated_per_step(const spec::RunSpec& spec, const program::RunData& data) {
  if (!data.validation || spec.evaluation.every_steps == 0) return 0;
  return static_cast<double>(data.validation->size()) / static_cast<double>(spec.evaluation.every_steps);
}

}  // namespace

PlannedModel planned_model(const Library& library, const spec::RunSpec& spec, const program::RunData& data) {
  const bool validates = data.validation != nullptr, tests = data.test != nullptr;
  return {.spec = spec,
          .input = [description = data.description](
                       const spec::StepShape& shape) { return program::model_input(description, shape); },
          .samples = data.training->size(),
          .evaluated_samples = evaluated_samples(spec, data),
          .evaluated_per_step = evaluated_per_step(spec, data),
          .item = std::string(data.description.info.item()),
          .items_per_sample = data.description.info.items_per_sample(),
          .loading_bytes =
              [&library, spec, description = data.description, sets = int{validates} + int{tests}](int64_t ranks) {
                const program::BatchShare share{0, static_cast<int>(ranks)};
                return program::loader_bytes(program::training_loader_options(spec, description, share, library),
                                             description) +
                       sets * program::loader_bytes(program::evaluation_loader_options(spec, description, share),
                                                    description);
              }};
}

}  // namespace weft::predict
