// Names that people know from other programs, for keys of a recipe.
#pragma once

#include <string>
#include <vector>

namespace weft::spec {

/// The key that a name such as "lr", "batch_size" or "learning_rate" means: by a list of usual names, or as the only
/// one of `keys` with that name in its table. Empty where there is none.
std::string key_of_usual_name(const std::string& name, const std::vector<std::string>& keys);

}  // namespace weft::spec
