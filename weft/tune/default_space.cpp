#include "weft/tune/default_space.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "weft/data/open_dataset.h"
#include "weft/models/options.h"
#include "weft/spec/recipe.h"
#include "weft/spec/recipe_keys.h"

namespace weft::tune {

namespace {

constexpr double kLowerRate = 1.0 / 30, kHigherRate = 10;

/// Two digits are enough for the end of a range.
std::string two_digits(double value) { return fmt::format("{:.2g}", value); }

bool reads(const Library& library, const std::string& key, const std::string& optimizer) {
  const std::vector<spec::RecipeKey> keys = spec::recipe_keys(library);
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const spec::RecipeKey& one) { return one.name == key; });
  return found != keys.end() &&
         std::find(found->read_by.begin(), found->read_by.end(), optimizer) != found->read_by.end();
}

/// Powers of two around the recipe's batch, none larger than the data.
std::vector<std::string> batches_around(int64_t batch, int64_t samples) {
  std::vector<std::string> batches;
  for (const double factor : {0.25, 0.5, 1.0, 2.0}) {
    const auto size = static_cast<int64_t>(std::llround(static_cast<double>(batch) * factor));
    if (size >= 1 && size <= samples && static_cast<double>(size) == static_cast<double>(batch) * factor)
      batches.push_back(std::to_string(size));
  }
  return batches;
}

bool has_option(const models::ModelEntry& model, const std::string& option) {
  return std::any_of(model.options.begin(), model.options.end(),
                     [&](const std::string& described) { return models::option_name(described) == option; });
}

}  // namespace

std::vector<RangeText> default_ranges(const spec::RunSpec& base, const Library& library) {
  spec::RunSpec spec = base;
  spec::resolve(spec, library);
  std::vector<RangeText> ranges;
  const auto add = [&](const std::string& key, RangeText::Kind kind, std::vector<std::string> arguments) {
    ranges.push_back({.key = key, .kind = kind, .arguments = std::move(arguments), .where = "the default range"});
  };
  const double rate = spec.optimizer.learning_rate;
  add("optimizer.learning_rate", RangeText::Kind::log, {two_digits(rate * kLowerRate), two_digits(rate * kHigherRate)});
  const bool is_decoupled = spec.optimizer.name == "adamw" || spec.optimizer.name == "lamb";
  add("optimizer.weight_decay", RangeText::Kind::log,
      is_decoupled ? std::vector<std::string>{"1e-4", "0.5"} : std::vector<std::string>{"1e-6", "1e-2"});
  if (reads(library, "optimizer.momentum", spec.optimizer.name))
    add("optimizer.momentum", RangeText::Kind::real, {"0.7", "0.98"});
  const std::unique_ptr<data::Dataset> training = data::open_dataset(library.data, spec.data, data::Split::train);
  if (spec.batch_schedule.batches.empty())
    if (const auto batches = batches_around(spec.batch, training->size()); batches.size() > 1)
      add("batch", RangeText::Kind::choice, batches);
  if (training->info().target_kind() == data::TargetKind::sample_class)
    add("loss.label_smoothing", RangeText::Kind::real, {"0", "0.2"});
  const models::ModelEntry& model = models::find_model(library.models, spec.model.name);
  if (has_option(model, "dropout")) add("model.dropout", RangeText::Kind::real, {"0", "0.5"});
  if (model.name == "mlp") add("model.hidden", RangeText::Kind::choice, {"64", "128", "256", "128,64", "256,128"});
  return ranges;
}

std::string print_range(const RangeText& range) {
  constexpr const char* kKinds[] = {"float", "log", "int", "log-int", "choice"};
  const bool has_commas = std::any_of(range.arguments.begin(), range.arguments.end(),
                                      [](const std::string& text) { return text.find(',') != text.npos; });
  const char* between = range.kind != RangeText::Kind::choice ? ":" : has_commas ? "|" : ",";
  return fmt::format("{}={}:{}", range.key, kKinds[static_cast<size_t>(range.kind)],
                     fmt::join(range.arguments, between));
}

}  // namespace weft::tune
