#include "weft/program/image_sizes.h"

#include "weft/base/error.h"
#include "weft/program/run_data.h"
#include "weft/spec/course.h"

namespace weft::program {

namespace {

using Parameters = std::vector<models::ParameterSpec>;

Parameters parameters_at(const Library& library, const spec::RunSpec& spec, const spec::DataDescription& description,
                         int64_t height) try {
  return build_model(library, spec.model.name, model_input(description, {1, height}), spec.model.options,
                     models::Mode::inference)
      .parameters;
} catch (const Error& error) {
  if (height == 0) throw;
  throw Error(ErrorKind::usage, fmt::format("image_schedule.sizes: images of height {} are too small for the model: {}",
                                            height, error.what()));
}

std::string name_of_size(const spec::DataDescription& description, int64_t height) {
  const Shape shape = data::scaled_shape(description.info.sample_shape, height);
  return fmt::format("{}x{}", shape[1], shape[2]);
}

}  // namespace

std::vector<spec::StepShape> usable_shapes(const Library& library, const spec::RunSpec& spec,
                                           const spec::DataDescription& description) {
  std::vector<spec::StepShape> shapes = spec::shapes_of(spec);
  Parameters whole;
  for (const spec::StepShape& shape : shapes) {
    if (shape.image_height == 0) continue;
    if (whole.empty()) whole = parameters_at(library, spec, description, 0);
    const Parameters now = parameters_at(library, spec, description, shape.image_height);
    check(now.size() == whole.size(), "a model has the same parameters for images of any size");
    for (size_t index = 0; index < whole.size(); ++index)
      if (now[index].shape != whole[index].shape)
        fail(ErrorKind::usage,
             "[{}] cannot train on images of several sizes: '{}' is {} for {} and {} for {}; leave image_schedule away "
             "or choose a model that averages over all places before its last layer, such as resnet9, resnet18 or "
             "mobilenet_v2",
             spec.model.name, whole[index].name, to_string(whole[index].shape), name_of_size(description, 0),
             to_string(now[index].shape), name_of_size(description, shape.image_height));
  }
  return shapes;
}

}  // namespace weft::program
