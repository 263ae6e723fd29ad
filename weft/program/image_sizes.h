// Decides which models can train on images of changing size.
#pragma once

#include <vector>

#include "weft/library/library.h"
#include "weft/spec/data_description.h"
#include "weft/spec/run_spec.h"
#include "weft/spec/step_shape.h"

namespace weft::program {

/// The shapes of a run's training steps. Error(usage) where its image size changes but the model's parameters depend on
/// it, or where an image becomes too small for the model.
std::vector<spec::StepShape> usable_shapes(const Library& library, const spec::RunSpec& spec,
                                           const spec::DataDescription& description);

}  // namespace weft::program
