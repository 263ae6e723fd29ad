#include "weft/tune/ranges/default_space.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "weft/base/parse_number.h"
#include "weft/data/open_dataset.h"
#include "weft/models/options.h"
#include "weft/program/run_data.h"
#include "weft/spec/recipe.h"
#include "weft/spec/recipe_keys.h"

namespace weft::tune {

namespace {

constexpr double kLowerRate = 1.0 / 30, kHigherRate = 10;

/// Two digits are enough for the end of a range.
std::string two_digits(double value) { return fmt::format("{:.2g}", value); }

/// Powers of two around the recipe's batch, none larger than the training part.
std::vector<std::string> batches_around(int64_t batch, int64_t samples) {
  std::vector<std::string> batches;
  for (const double factor : {0.25, 0.5, 1.0, 2.0}) {
    const auto size = static_cast<int64_t>(std::llround(static_cast<double>(batch) * factor));
    if (size >= 1 && size <= samples && static_cast<double>(size) == static_cast<double>(batch) * factor)
      batches.push_back(std::to_string(size));
  }
  return batches;
}

/// What the model has where nobody says it, of "width=16: channels of the first layer"; nullopt: it has no such option.
std::optional<std::string> usual_value(const models::ModelEntry& model, const std::string& option) {
  for (const std::string& described : model.options)
    if (models::option_name(described) == option)
      return described.substr(option.size() + 1, described.find(':') - option.size() - 1);
  return std::nullopt;
}

/// As the recipe or the model has it, where that is a whole number.
std::optional<int64_t> whole_option(const spec::ModelSpec& spec, const models::ModelEntry& model,
                                    const std::string& option) {
  const std::optional<std::string> usual = usual_value(model, option);
  if (!usual) return std::nullopt;
  const auto set = spec.options.find(option);
  return parse_number<int64_t>(set != spec.options.end() ? set->second : *usual);
}

/// Half as wide, and twice: in multiples of what must divide it, and of 8, which kernels like, where it is wide.
std::vector<std::string> widths_around(int64_t width, int64_t divisor) {
  const int64_t unit = divisor > 1 ? divisor : width >= 16 ? 8 : 1;
  std::set<int64_t> widths = {width};
  for (const int64_t other : {width / 2, width * 2})
    if (other >= unit) widths.insert(other / unit * unit);
  std::vector<std::string> texts;
  for (const int64_t one : widths) texts.push_back(std::to_string(one));
  return texts;
}

/// Some fewer, and some more.
std::vector<std::string> depths_around(int64_t layers) {
  std::vector<std::string> texts;
  for (const int64_t one : std::set<int64_t>{std::max<int64_t>(1, layers / 2), layers, (3 * layers + 1) / 2})
    texts.push_back(std::to_string(one));
  return texts;
}

using Add = std::function<void(const std::string& key, RangeText::Kind kind, std::vector<std::string> arguments)>;

/// How wide the model is, how many layers it has where that is free, and its dropout.
void add_model_ranges(const spec::ModelSpec& spec, const models::ModelEntry& model, const Add& add) {
  if (usual_value(model, "dropout")) add("model.dropout", RangeText::Kind::real, {"0", "0.5"});
  if (model.name == "mlp") add("model.hidden", RangeText::Kind::choice, {"64", "128", "256", "128,64", "256,128"});
  // Factors of Sandler et al. 2018, table 4; other models count channels.
  if (model.name == "mobilenet_v2") return add("model.width", RangeText::Kind::choice, {"0.5", "0.75", "1", "1.4"});
  if (spec.options.contains("preset")) return;  // the recipe has said how large the model is
  if (const auto width = whole_option(spec, model, "width"))
    add("model.width", RangeText::Kind::choice, widths_around(*width, whole_option(spec, model, "heads").value_or(1)));
  if (const auto layers = whole_option(spec, model, "layers"))
    add("model.layers", RangeText::Kind::choice, depths_around(*layers));
}

}  // namespace

int64_t training_samples(const spec::RunSpec& spec, const Library& library) {
  spec::RunSpec any_batch = spec;
  any_batch.batch = 1;
  any_batch.batch_schedule = {};
  return program::open_run_data(library, any_batch).training->size();
}

bool reads_key(const Library& library, const std::string& key, const std::string& optimizer) {
  const std::vector<spec::RecipeKey> keys = spec::recipe_keys(library);
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const spec::RecipeKey& one) { return one.name == key; });
  return found != keys.end() &&
         std::find(found->read_by.begin(), found->read_by.end(), optimizer) != found->read_by.end();
}

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
  if (reads_key(library, "optimizer.momentum", spec.optimizer.name))
    add("optimizer.momentum", RangeText::Kind::real, {"0.7", "0.98"});
  const std::unique_ptr<data::Dataset> training = data::open_dataset(library.data, spec.data, data::Split::train);
  if (spec.batch_schedule.batches.empty())
    if (const auto batches = batches_around(spec.batch, training_samples(spec, library)); batches.size() > 1)
      add("batch", RangeText::Kind::choice, batches);
  if (training->info().target_kind() == data::TargetKind::sample_class)
    add("loss.label_smoothing", RangeText::Kind::real, {"0", "0.2"});
  const models::ModelEntry& model = models::find_model(library.models, spec.model.name);
  add_model_ranges(spec.model, model, add);
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
