#include "weft/tune/ranges/recipe_space.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/base/parse_number.h"
#include "weft/models/options.h"
#include "weft/spec/recipe_keys.h"
#include "weft/spec/usual_names.h"

namespace weft::tune {

namespace {

constexpr std::string_view kModel = "model.";

/// Why a key cannot be searched; empty where it can.
std::string why_fixed(const std::string& key) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return name.ends_with('.') ? key.starts_with(name) : key == name;
    });
  };
  if (is_one_of({"data", "validation", "validation_seed"})) return "it decides what trials are measured by";
  if (is_one_of({"evaluation.", "stop.", "metrics."})) return "it decides how trials are measured";
  if (is_one_of({"threads", "virtual_ranks", "balance."})) return "it changes the sums of every trial";
  if (is_one_of({"checkpoint.", "loader.", "offload", "offload_rate", "cluster", "cost_profile", "memory_limit"}))
    return "it does not change what is learned";
  if (is_one_of({"max_steps", "max_time"})) return "trials end by epochs";
  return "";
}

/// What is known of the keys of one search.
class Keys {
 public:
  Keys(const std::vector<RangeText>& ranges, const spec::RunSpec& base, const Library& library)
      : ranges_(ranges), base_(base), library_(library) {
    std::vector<std::string> groups;
    for (const auto& [group, parameters] : base.optimizer.groups) groups.push_back(group);
    keys_ = spec::recipe_keys(library, groups);
  }

  Dimension dimension(const RangeText& range) const {
    if (const std::string reason = why_fixed(range.key); !reason.empty())
      fail(ErrorKind::usage, "{}: {} is not searched, since {}; set it in the recipe", range.where, range.key, reason);
    const bool is_option = range.key.starts_with(kModel) && range.key != "model.name";
    Dimension d = is_option ? option_dimension(range) : key_dimension(range, find(range));
    if (range.condition) {
      d.condition = Condition{range.condition->first, {}};
      const RangeText* parent = range_of(range.condition->first);
      if (parent == nullptr)
        fail(ErrorKind::usage,
             "{}: the condition names '{}', which is not searched; give it a range, or leave the "
             "condition away",
             range.where, range.condition->first);
      for (const std::string& text : range.condition->second) {
        d.condition->values.push_back(value_of(*parent, text, range.where));
        require_read(range, text, is_option);
      }
    } else if (is_option) {
      d.condition = condition_by_readers(range, models_with(range), "model.name");
    } else if (const spec::RecipeKey& key = find(range); !key.read_by.empty()) {
      d.condition = condition_by_readers(range, key.read_by, spec::section_of(range.key) + ".name");
    }
    return d;
  }

 private:
  const RangeText* range_of(const std::string& key) const {
    const auto found =
        std::find_if(ranges_.begin(), ranges_.end(), [&](const RangeText& one) { return one.key == key; });
    return found == ranges_.end() ? nullptr : &*found;
  }

  const spec::RecipeKey* find(const std::string& name) const {
    const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const auto& key) { return key.name == name; });
    return found == keys_.end() ? nullptr : &*found;
  }

  const spec::RecipeKey& find(const RangeText& range) const {
    if (const spec::RecipeKey* key = find(range.key)) return *key;
    std::vector<std::string> names;
    for (const spec::RecipeKey& key : keys_) names.push_back(key.name);
    if (const std::string usual = spec::key_of_usual_name(range.key, names); !usual.empty())
      fail(ErrorKind::usage, "{}: unknown key '{}'; it is called '{}' here", range.where, range.key, usual);
    fail(ErrorKind::usage, "{}: unknown key '{}'{}", range.where, range.key, key_suggestion(range.key, names));
  }

  /// The value of a choice, as the key of its range has it, written at `where`.
  KeyValue value_of(const RangeText& range, const std::string& text, const std::string& where) const {
    if (range.key.starts_with(kModel)) return text;
    const spec::RecipeKey& key = find(range);
    const KeyValue value = read_value(key, text);
    checked_value(key, value, where);
    if (key.name == "batch" && std::holds_alternative<std::string>(value))
      fail(ErrorKind::usage,
           "{}: a batch of 'auto' is measured when its trial has begun, and trials are packed by their memory before; "
           "list numbers",
           where);
    return value;
  }

  static double number(const RangeText& range, const std::string& text) {
    const std::optional<double> number = parse_number<double>(text);
    if (!number)
      fail(ErrorKind::usage, "{}: {} wants numbers as the ends of its range, got '{}'", range.where, range.key, text);
    return *number;
  }

  static int64_t whole(const RangeText& range, const std::string& text) {
    const std::optional<int64_t> whole = parse_number<int64_t>(text);
    if (!whole) fail(ErrorKind::usage, "{}: {} wants whole numbers, got '{}'", range.where, range.key, text);
    return *whole;
  }

  /// Of the kind that the text says.
  Dimension plain_dimension(const RangeText& range) const {
    const auto& arguments = range.arguments;
    switch (range.kind) {
      case RangeText::Kind::real:
        return real(range.key, number(range, arguments[0]), number(range, arguments[1]));
      case RangeText::Kind::log:
        return log_real(range.key, number(range, arguments[0]), number(range, arguments[1]));
      case RangeText::Kind::log_integer:
        return log_integer(range.key, whole(range, arguments[0]), whole(range, arguments[1]));
      case RangeText::Kind::integer:
        return integer(range.key, whole(range, arguments[0]), whole(range, arguments[1]),
                       arguments.size() > 2 ? whole(range, arguments[2]) : 1);
      case RangeText::Kind::choice:
        break;
    }
    std::vector<KeyValue> choices;
    for (const std::string& text : arguments) choices.push_back(value_of(range, text, range.where));
    return choice(range.key, std::move(choices));
  }

  Dimension key_dimension(const RangeText& range, const spec::RecipeKey& key) const {
    RangeText typed = range;
    const bool is_whole = std::holds_alternative<int64_t>(key.value),
               is_real = std::holds_alternative<double>(key.value);
    if (range.kind != RangeText::Kind::choice && !is_whole && !is_real)
      fail(ErrorKind::usage, "{}: {} is {}; list what to choose from: choice:A,B", range.where, range.key,
           kind_of(key));
    if (is_whole && range.kind == RangeText::Kind::log) typed.kind = RangeText::Kind::log_integer;
    if (is_whole && range.kind == RangeText::Kind::real) typed.kind = RangeText::Kind::integer;
    Dimension d = plain_dimension(typed);
    require_good(range, d);
    if (d.kind == Dimension::Kind::choice) {
      if (range.key == "model.name") require_models(range);
      return d;
    }
    for (const double end : {d.low, d.high}) {
      const KeyValue value = is_whole ? KeyValue(static_cast<int64_t>(end)) : KeyValue(end);
      checked_value(key, value, range.where);
    }
    return d;
  }

  /// What is wrong with the range itself, with the place where it was written.
  static void require_good(const RangeText& range, const Dimension& d) {
    try {
      Space({d});
    } catch (const Error& error) {
      fail(error.kind(), "{}: {}", range.where, error.what());
    }
  }

  void require_models(const RangeText& range) const {
    for (const std::string& name : range.arguments) models::find_model(library_.models, name);
  }

  Dimension option_dimension(const RangeText& range) const {
    Dimension d = plain_dimension(range);
    require_good(range, d);
    return d;
  }

  /// Of the models at hand those that have the option. Error(usage) where none has, with the nearest name.
  std::vector<std::string> models_with(const RangeText& range) const {
    const std::string option = range.key.substr(kModel.size());
    const RangeText* models = range_of("model.name");
    const std::vector<std::string> names =
        models != nullptr ? models->arguments : std::vector<std::string>{base_.model.name};
    std::vector<std::string> with, known;
    for (const std::string& name : names) {
      const models::ModelEntry& entry = models::find_model(library_.models, name);
      for (const std::string& described : entry.options) {
        known.push_back(models::option_name(described));
        if (known.back() == option) with.push_back(name);
      }
    }
    if (with.empty())
      fail(ErrorKind::usage, "{}: {} has no option '{}'{}", range.where, fmt::join(names, ", "), option,
           known.empty() ? "; it has none" : suggestion(option, known));
    return with;
  }

  /// Where the condition of the range is on what reads the key, `value` must be one that does.
  void require_read(const RangeText& range, const std::string& value, bool is_option) const {
    const std::string chooser = is_option ? "model.name" : spec::section_of(range.key) + ".name";
    if (range.condition->first != chooser) return;
    const std::vector<std::string> readers = is_option ? models_with(range) : find(range).read_by;
    if (readers.empty() || std::find(readers.begin(), readers.end(), value) != readers.end()) return;
    fail(ErrorKind::usage, "{}: {} has no effect with {} = '{}'; it is read by {}", range.where, range.key, chooser,
         value, fmt::join(readers, ", "));
  }

  /// The key is there for those choices of `chooser` that read it. nullopt where all do.
  std::optional<Condition> condition_by_readers(const RangeText& range, const std::vector<std::string>& readers,
                                                const std::string& chooser) const {
    const auto reads = [&](const std::string& name) {
      return std::find(readers.begin(), readers.end(), name) != readers.end();
    };
    const RangeText* choices = range_of(chooser);
    if (choices == nullptr) {
      const std::string name = value_in_base(chooser);
      if (!name.empty() && name != "auto" && !reads(name))
        fail(ErrorKind::usage, "{}: {} has no effect with {} = '{}'; it is read by {}", range.where, range.key, chooser,
             name, fmt::join(readers, ", "));
      return std::nullopt;
    }
    Condition condition{chooser, {}};
    for (const std::string& name : choices->arguments)
      if (reads(name)) condition.values.emplace_back(name);
    if (condition.values.empty())
      fail(ErrorKind::usage, "{}: {} has no effect with any of {} = {}; it is read by {}", range.where, range.key,
           chooser, fmt::join(choices->arguments, ", "), fmt::join(readers, ", "));
    if (condition.values.size() == choices->arguments.size()) return std::nullopt;
    return condition;
  }

  /// Of a text; empty where there is no such key.
  std::string value_in_base(const std::string& name) const {
    const spec::RecipeKey* key = find(name);
    if (key == nullptr) return "";
    spec::RunSpec copy = base_;
    const KeyValue value = spec::value_at(key->place(copy));
    const auto* text = std::get_if<std::string>(&value);
    return text != nullptr ? *text : "";
  }

  const std::vector<RangeText>& ranges_;
  const spec::RunSpec& base_;
  const Library& library_;
  std::vector<spec::RecipeKey> keys_;
};

}  // namespace

Space recipe_space(const std::vector<RangeText>& ranges, const spec::RunSpec& base, const Library& library) {
  if (ranges.empty())
    fail(ErrorKind::usage,
         "there is nothing to search: give --set-range KEY=RANGE, such as optimizer.learning_rate=log:1e-4:1, or "
         "--space "
         "FILE");
  const Keys keys(ranges, base, library);
  std::vector<Dimension> dimensions;
  for (const RangeText& range : ranges) dimensions.push_back(keys.dimension(range));
  return Space(std::move(dimensions));
}

void apply_values(spec::RunSpec& spec, const Values& values, const Library& library) {
  for (const auto& [name, value] : values) spec::set_field(spec, name, value, "trial", library);
}

}  // namespace weft::tune
