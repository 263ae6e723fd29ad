// Shared by several sub-commands: dimensions as text, and the recipe or model that a user names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/models/model.h"
#include "weft/spec/run_spec.h"

namespace weft::cli {

/// Joins repeated options into one `precision_of` as a recipe has it.
std::string joined(const std::vector<std::string>& precision_of);

/// Parses "3,224,224". Error(usage) naming the option for anything but whole numbers from 1 on.
std::vector<int64_t> parse_dimensions(const std::string& text, const std::string& option);

inline constexpr const char* kOffloadHelp =
    "Directory on a disk: where recomputation cannot keep to the limit, activations lie in a file there; default: none";

/// Applies a recipe: a file, or a recipe that comes with weft. A folder of the same name, such as a data folder, does
/// not hide the latter. Error(usage) where there is neither.
void apply_recipe(const Library& library, spec::RunSpec& spec, const std::string& name);

/// A model as named in `weft bench` and `weft graph`.
struct ModelChoice {
  std::string model;                           // or a recipe, which only spec_of() reads
  std::string input;                           // "C,H,W" or "T"; empty: the model's default
  int64_t classes = 0;                         // 0: the model's default
  int64_t batch = 0;                           // 0: that of the recipe, or the default of the sub-command
  int64_t threads = 0;                         // 0: all cores
  std::string precision = {};                  // empty: f32, or that of the run
  std::vector<std::string> precision_of = {};  // NAME=TYPE
  std::string memory_limit = {};               // "1.5GB"; empty: none
  std::string offload = {};                    // directory; empty: none
  std::vector<std::string> set;                // KEY=VALUE
};

/// The resolved spec, with a precision left to the machine still open. Error(usage) as for a recipe.
spec::RunSpec spec_of_model(const Library& library, const ModelChoice& choice, int64_t default_batch);
/// A recipe that comes with weft, or a file of that kind, and no model of the library.
bool names_recipe(const Library& library, const std::string& name);
/// The same with that precision chosen. A recipe may be named instead of a model of the library.
spec::RunSpec spec_of(const Library& library, const ModelChoice& choice, int64_t default_batch);
/// Error(usage) for an unknown model, with the nearest name.
models::ModelInput input_of(const Library& library, const ModelChoice& choice, int64_t batch);

inline constexpr const char* kCheckpointHelp =
    "last, best or auto (default): the best where a validation part chose it, else the last";
inline std::vector<std::string> checkpoint_names() { return {"auto", "last", "best"}; }

/// What `weft train WORDS` would train, `words` beginning with "train"; nullopt where that cannot be told here, since
/// words are wrong or the recipe lies elsewhere.
std::optional<spec::RunSpec> spec_of_words(const Library& library, const std::vector<std::string>& words);

/// Does what the words, "train" and what follows, say, in this process alone; the exit code. CLI::ParseError; Error as
/// of `weft train`.
int train_by_words(const Library& library, const std::vector<std::string>& words, const std::string& program,
                   const std::function<bool()>& stop_requested);

}  // namespace weft::cli
