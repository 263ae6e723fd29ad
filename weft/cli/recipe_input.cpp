#include "weft/cli/recipe_input.h"

#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/base/parse_number.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/open_dataset.h"
#include "weft/program/run_data.h"

namespace weft::cli {

namespace {

/// The shape that the data's name alone gives away: "images:DIR?size=96" of a model that reads images, "text:FILE?
/// length=64" of one that reads tokens. False where it says nothing.
bool takes_shape_by_name(const std::string& data, models::ModelInput& input) {
  const data::DataSpec spec = data::parse_data_spec(data);
  bool is_told = false;
  for (const auto& [name, value] : spec.options) {
    const std::optional<int64_t> number = parse_number<int64_t>(value);
    if (!number || *number < 1) continue;
    std::vector<int64_t>& shape = input.shape;
    const bool is_image = shape.size() == 3, is_text = shape.size() == 1 && spec.kind != "csv";
    is_told |= (is_image && (name == "size" || name == "height" || name == "width")) || (is_text && name == "length");
    if (is_image && (name == "size" || name == "height")) shape[1] = *number;
    if (is_image && (name == "size" || name == "width")) shape[2] = *number;
    if (is_text && name == "length") shape[0] = *number;
  }
  return is_told;
}

}  // namespace

RecipeInput input_of_recipe(const Library& library, const ModelChoice& choice, spec::RunSpec& spec) {
  ModelChoice of_model = choice;
  of_model.model = spec.model.name;
  RecipeInput found{input_of(library, of_model, spec.batch), "--input", ""};
  if (!choice.input.empty()) return found;
  found.source = "the model's default";
  if (!names_recipe(library, choice.model) || spec.data.empty()) return found;
  try {
    const std::unique_ptr<data::Dataset> training = data::open_dataset(library.data, spec.data, data::Split::train);
    const spec::DataDescription description{training->info(), {}};
    spec::Stage stage = program::largest_stage(spec, description);
    if (choice.batch != 0) stage.batch = spec.batch;
    spec.batch = stage.batch;
    if (choice.batch == 0) spec.accumulate = stage.accumulate;
    found.input = program::model_input(description, stage.shape());
    if (choice.classes != 0) found.input.classes = choice.classes;
    found.source = fmt::format("the data '{}'", spec.data);
    return found;
  } catch (const Error& error) {
    const bool is_told = takes_shape_by_name(spec.data, found.input);
    found.source = is_told ? "the data's name and the model's default" : "the model's default";
    found.note = fmt::format(
        "the recipe's data cannot be read here ({}); assumed an input of {} and {} classes, from {}; give --input and "
        "--classes, or put the data there",
        error.what(), to_string(Shape(found.input.shape)), found.input.classes, found.source);
    return found;
  }
}

}  // namespace weft::cli
