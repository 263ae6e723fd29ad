#include "weft/cli/options.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/number_list.h"
#include "weft/spec/built_in_recipes.h"
#include "weft/spec/compile_options.h"
#include "weft/spec/recipe.h"

namespace weft::cli {

std::vector<int64_t> parse_dimensions(const std::string& text, const std::string& option) {
  const std::optional<std::vector<int64_t>> dims = parse_number_list<int64_t>(text);
  if (dims && std::all_of(dims->begin(), dims->end(), [](int64_t dim) { return dim >= 1 && dim <= 1'000'000; }))
    return *dims;
  fail(ErrorKind::usage, "{} '{}': wants whole numbers from 1 to 1000000, such as 3,224,224", option, text);
}

std::string joined(const std::vector<std::string>& precision_of) {
  return fmt::format("{}", fmt::join(precision_of, ", "));
}

void apply_recipe(const Library& library, spec::RunSpec& spec, const std::string& name) {
  std::error_code code;
  const spec::BuiltInRecipe* built_in = spec::find_built_in_recipe(name);
  if (built_in != nullptr && !std::filesystem::is_regular_file(name, code))
    spec::apply_recipe(spec, built_in->text, "recipe " + name, library);
  else if (built_in == nullptr && !std::filesystem::exists(name, code) && name.find_first_of("./") == name.npos)
    fail(ErrorKind::usage, "there is no recipe '{}', and no such file{}", name, spec::suggest_recipe(name));
  else
    spec::apply_recipe_file(spec, name, library);
}

namespace {

/// All that the choice says beside the name.
spec::RunSpec with_choice(const Library& library, spec::RunSpec spec, const ModelChoice& choice) {
  if (choice.batch != 0) spec::set_field(spec, "batch", choice.batch, "--batch", library);
  spec::set_field(spec, "threads", choice.threads, "--threads", library);
  if (!choice.precision.empty()) spec::set_field(spec, "precision", choice.precision, "--precision", library);
  if (!choice.precision_of.empty())
    spec::set_field(spec, "precision_of", joined(choice.precision_of), "--precision-of", library);
  if (!choice.memory_limit.empty())
    spec::set_field(spec, "memory_limit", choice.memory_limit, "--memory-limit", library);
  if (!choice.offload.empty()) spec::set_field(spec, "offload", choice.offload, "--offload", library);
  for (const std::string& assignment : choice.set) spec::set_from_text(spec, assignment, library);
  spec::resolve(spec, library);
  return spec;
}

}  // namespace

spec::RunSpec spec_of_model(const Library& library, const ModelChoice& choice, int64_t default_batch) {
  spec::RunSpec spec;
  spec::set_field(spec, "model.name", choice.model, "MODEL", library);
  spec.batch = default_batch;
  return with_choice(library, std::move(spec), choice);
}

bool names_recipe(const Library& library, const std::string& name) {
  const auto is_named = [&](const models::ModelEntry& entry) { return entry.name == name; };
  if (std::any_of(library.models.begin(), library.models.end(), is_named)) return false;
  return spec::find_built_in_recipe(name) != nullptr || name.ends_with(".toml");
}

spec::RunSpec spec_of(const Library& library, const ModelChoice& choice, int64_t default_batch) {
  spec::RunSpec spec;
  if (!names_recipe(library, choice.model)) {
    spec = spec_of_model(library, choice, default_batch);
  } else {
    apply_recipe(library, spec, choice.model);
    spec = with_choice(library, std::move(spec), choice);
  }
  spec::choose_automatic_precision(spec, *library.device.make({}));
  return spec;
}

models::ModelInput input_of(const Library& library, const ModelChoice& choice, int64_t batch) {
  models::ModelInput input = models::find_model(library.models, choice.model).default_input;
  input.batch = batch;
  if (!choice.input.empty()) input.shape = parse_dimensions(choice.input, "--input");
  if (choice.classes != 0) input.classes = choice.classes;
  return input;
}

}  // namespace weft::cli
