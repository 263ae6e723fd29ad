// Chooses a first recipe for data that weft has not seen before. Each choice comes with its reason and what else to
// try.
#pragma once

#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/program/run_data.h"
#include "weft/spec/recipe.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

struct StartingRecipe {
  spec::RunSpec spec;
  std::vector<spec::CommentedKey> keys;  // the keys of `spec` that were chosen, in the order of a recipe
};

/// Follows rules over the data: task, kind, size and number of samples. `data_spec` names the data; `test` is null
/// where there are no test data. Error(usage) for data that no rule covers.
StartingRecipe choose_recipe(const std::string& data_spec, const data::Dataset& training, const data::Dataset* test);

/// "54000 images (1,28,28) of 10 classes for training, 6000 for validation, 10000 for testing"
std::string describe_data(const program::RunData& data);

}  // namespace weft::run
