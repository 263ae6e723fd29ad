#include "weft/spec/key_reference.h"

#include <fmt/ranges.h>

#include <cctype>

#include "weft/base/error.h"
#include "weft/spec/recipe.h"

namespace weft::spec {

namespace {

constexpr const char* kBeginning =
    R"(# Keys of a recipe

`weft keys --markdown` makes this page from the declarations of the keys (`weft/spec/keys`, and what entries of the
library declare); a test keeps it equal. `weft keys NAME` shows one key or one table, `weft keys '*rate*'` the keys that
match a pattern, and `weft keys --schema` prints a JSON Schema, with which editors complete and check recipes:

```
build/weft keys --schema > recipe.schema.json    # then, as the first line of a recipe: #:schema ./recipe.schema.json
```

`auto` is what a recipe has that leaves the key away: weft chooses. Where it says "measured", weft
[measures](schedules.md#measured-before-the-first-step) the value before the first step, and only a recipe that says
`auto` has it. Model options (`model.KEY`) are the model's own:
`weft models NAME`.
)";

std::string range_of(const Key& key) {
  if (key.low == kAboveZero) return fmt::format("above 0, at most {}", key.high);
  return fmt::format("from {} to {}", key.low, key.high);
}

/// Of a cell of a table.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

}  // namespace

std::string values_of(const Key& key) {
  std::string text;
  if (std::holds_alternative<bool>(key.value))
    text = "true, false";
  else if (std::holds_alternative<std::string>(key.value))
    text = key.choices.empty() ? "a text" : fmt::format("{}", fmt::join(key.choices, ", "));
  else if (std::holds_alternative<std::vector<double>>(key.value))
    text = "numbers " + range_of(key);
  else
    text = fmt::format("{} {}", kind_of(key), range_of(key));
  if (text.starts_with(", ")) text = "\"\"" + text;  // an empty text may be chosen
  if (!key.unit.empty()) text += " (" + key.unit + ")";
  if (!key.automatic) return text;
  return text + (key.is_measured ? ", or auto: measured" : ", or auto");
}

std::string default_of(const Key& key) {
  if (const auto* real = std::get_if<double>(&key.value); real != nullptr && key.is_measured && *real < key.low)
    return "of the entry";  // of the library, such as the optimizer
  if (key.is_measured) return literal(key.value);
  return key.automatic && key.value == *key.automatic ? "auto" : literal(key.value);
}

std::string flag_help(const std::string& name) {
  for (const RecipeKey& key : recipe_keys()) {
    if (key.name != name) continue;
    std::string help = key.help;
    const bool is_open = std::holds_alternative<std::string>(key.value) && key.choices.empty();
    if (key.choices.empty()) help[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(help[0])));
    if (!std::holds_alternative<std::string>(key.value) && !std::holds_alternative<bool>(key.value))
      help += "; " + range_of(key);
    return is_open ? help : help + "; default: " + default_of(key);
  }
  fail(ErrorKind::internal, "there is no key '{}'", name);
}

std::string key_reference(const std::vector<RecipeKey>& keys) {
  std::string out = kBeginning, section = "none yet";
  std::string top, tables;
  for (const RecipeKey& key : keys) {
    const std::string table = section_of(key.name);
    std::string& target = table.empty() ? top : tables;
    const char* const heading = "\n| key | values | default | |\n|---|---|---|---|\n";
    if (table.empty() && top.empty()) target += fmt::format("\n## Above all tables\n{}", heading);
    if (!table.empty() && table != section) {
      target += fmt::format("\n## [{}]\n{}", table, heading);
      section = table;
    }
    const std::string readers = key.read_by.empty() ? "" : fmt::format(" *Read by {}.*", fmt::join(key.read_by, ", "));
    target += fmt::format("| `{}` | {} | `{}` | {}{} |\n", name_in_section(key.name), escaped(values_of(key)),
                          escaped(default_of(key)), escaped(key.help), readers);
  }
  return out + top + tables;
}

}  // namespace weft::spec
