// What several sub-commands share: dimensions as text, the recipe and the model that a user names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/models/model.h"
#include "weft/spec/run_spec.h"

namespace weft::cli {

/// The exceptions of a recipe's `precision_of` from those of repeated options.
std::string joined(const std::vector<std::string>& precision_of);

/// "3,224,224"; Error(usage) naming the option for anything but whole numbers from 1 on.
std::vector<int64_t> parse_dimensions(const std::string& text, const std::string& option);

inline constexpr const char* kOffloadHelp =
    "Directory on a disk: where recomputation cannot keep to the limit, activations lie in a file there; default: none";

/// Sets what a recipe says: a file, or one of those that come with weft, of which a folder of that name, such as one of
/// data, hides none. Error(usage) where there is none of that name.
void apply_recipe(const Library& library, spec::RunSpec& spec, const std::string& name);

/// A model as `weft bench` and `weft graph` name it.
struct ModelChoice {
  std::string model;                           // or a recipe, which spec_of() reads
  std::string input;                           // "C,H,W" or "T"; empty: the model's own default
  int64_t classes = 0;                         // 0: the model's own default
  int64_t batch = 0;                           // 0: the recipe's, or the default of the sub-command
  int64_t threads = 0;                         // 0: all cores
  std::string precision = {};                  // empty: f32, or that of the run
  std::vector<std::string> precision_of = {};  // NAME=TYPE
  std::string memory_limit = {};               // "1.5GB"; empty: none
  std::string offload = {};                    // directory; empty: none
  std::vector<std::string> set;                // KEY=VALUE
};

/// The spec resolved, but for a precision that is left to the machine. Error(usage) as a recipe gives.
spec::RunSpec spec_of_model(const Library& library, const ModelChoice& choice, int64_t default_batch);
/// The same with that too, and where no model of the library but a recipe may be named.
spec::RunSpec spec_of(const Library& library, const ModelChoice& choice, int64_t default_batch);
/// Error(usage) for an unknown model, with the nearest name.
models::ModelInput input_of(const Library& library, const ModelChoice& choice, int64_t batch);

}  // namespace weft::cli
