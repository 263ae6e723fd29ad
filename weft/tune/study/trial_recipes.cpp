#include "weft/tune/study/trial_recipes.h"

#include <system_error>

#include "weft/base/files.h"

namespace weft::tune {

void TrialRecipes::write(int64_t trial, const std::string& recipe) {
  const std::filesystem::path file = study_.recipe_of(trial);
  make_directories(file.parent_path());  // somebody may have removed it
  replace_file(file, recipe);
  unsynced_.insert(trial);
}

bool TrialRecipes::has(int64_t trial) const {
  std::error_code code;
  const auto bytes = std::filesystem::file_size(study_.recipe_of(trial), code);
  return !code && bytes > 0;
}

void TrialRecipes::sync() {
  if (unsynced_.empty()) return;
  for (const int64_t trial : unsynced_) sync_file(study_.recipe_of(trial));
  sync_directory(study_.recipe_of(0).parent_path());
  unsynced_.clear();
}

}  // namespace weft::tune
