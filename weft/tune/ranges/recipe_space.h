// The space of a search over recipes: ranges of keys and of the model's options, typed and checked by the declarations
// of the keys.
#pragma once

#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/spec/run_spec.h"
#include "weft/tune/ranges/range_text.h"
#include "weft/tune/space/space.h"

namespace weft::tune {

/// `base` is the recipe whose keys are searched. A key that only some choices of its table read, such as
/// optimizer.momentum beside a search of optimizer.name, has the condition that one of them is chosen. Error(usage),
/// naming the place where the range was written: for unknown keys (with the nearest), ranges and choices that the key
/// refuses, keys that the recipe does not read, and keys that decide what is measured or how fast.
Space recipe_space(const std::vector<RangeText>& ranges, const spec::RunSpec& base, const Library& library);

/// Sets the keys of the spec. Error(usage).
void apply_values(spec::RunSpec& spec, const Values& values, const Library& library);

}  // namespace weft::tune
