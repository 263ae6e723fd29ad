// A first recipe for data that weft has not seen before: every choice with its reason and what else to try.
#pragma once

#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/spec/recipe.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

struct StartingRecipe {
  spec::RunSpec spec;
  std::vector<spec::CommentedKey> keys;  // those of spec that were chosen, in the order of a recipe
};

/// By rules over what the data are: task, kind and size of the samples, how many there are. `data_spec` is their name,
/// `test` null where there are no test data. Error(usage) for data that no rule is for.
StartingRecipe choose_recipe(const std::string& data_spec, const data::Dataset& training, const data::Dataset* test);

/// "60000 images (1,28,28) of 10 classes for training, 10000 for testing"
std::string describe_data(const data::Dataset& training, const data::Dataset* test);

}  // namespace weft::run
