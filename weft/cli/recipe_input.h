// What the model of a recipe reads, for commands that run no training: the shape of the recipe's own data where they
// are at hand.
#pragma once

#include <string>

#include "weft/cli/options.h"

namespace weft::cli {

struct RecipeInput {
  models::ModelInput input;
  std::string source;  // where the shape is from, for reports: "--input", "the data 'images:photos?size=96'", ...
  std::string note;    // for the user: what was assumed in place of data that cannot be read; else empty
};

/// Of a spec that the choice made; a model that is named alone has no data. In this order: --input, the recipe's data,
/// what the text that names them says
/// (`size=`, `length=`), the model's default. --classes counts in all cases. Where the data are read and the recipe has
/// stages, sets spec.batch and spec.accumulate to those of the largest, unless the choice has a batch.
RecipeInput input_of_recipe(const Library& library, const ModelChoice& choice, spec::RunSpec& spec);

}  // namespace weft::cli
