// What is searched where nobody says it: the keys that decide the most for the model and the optimiser of a recipe.
#pragma once

#include <vector>

#include "weft/library/library.h"
#include "weft/spec/run_spec.h"
#include "weft/tune/ranges/range_text.h"

namespace weft::tune {

/// Around what the recipe has: the learning rate from a thirtieth to ten times, the batch from a quarter to twice. And
/// the weight decay, the momentum where the optimiser has one, label smoothing of classes. Of the model its dropout,
/// its width from half to twice, its layers where their number is free, the widths of an mlp. Error(usage) where the
/// recipe cannot be resolved.
std::vector<RangeText> default_ranges(const spec::RunSpec& base, const Library& library);

/// That are left to train on once the validation part of the recipe is set aside. Error where the data cannot be
/// opened.
int64_t training_samples(const spec::RunSpec& spec, const Library& library);

/// Whether an optimizer of this name reads the key.
bool reads_key(const Library& library, const std::string& key, const std::string& optimizer);

/// "optimizer.learning_rate=log:0.003:1", as --set-range takes it.
std::string print_range(const RangeText& range);

}  // namespace weft::tune
