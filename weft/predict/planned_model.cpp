#include "weft/predict/planned_model.h"

#include "weft/program/forecast.h"

namespace weft::predict {

PlannedModel planned_model(const Library& library, const spec::RunSpec& spec, const program::RunData& data) {
  const bool validates = data.validation != nullptr, tests = data.test != nullptr;
  return {.spec = spec,
          .input = [description = data.description](
                       const spec::StepShape& shape) { return program::model_input(description, shape); },
          .samples = data.training->size(),
          .evaluated_samples =
              [spec, validation = data.validation ? data.validation->size() : 0,
               test = data.test ? data.test->size() : 0](int64_t steps) {
                return program::evaluations_of(spec, /*of_test=*/false, steps) * static_cast<double>(validation) +
                       program::evaluations_of(spec, /*of_test=*/true, steps) * static_cast<double>(test);
              },
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
