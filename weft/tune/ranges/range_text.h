// Ranges as users write them, on the command line and in a space file:
//   optimizer.learning_rate=log:1e-4:1        batch=int:16:256:16         model.hidden=choice:64|128,64
//   optimizer.momentum=float:0.5:0.99 if optimizer.name=sgd,lars
// A space file is TOML with the tables of a recipe. A key has such a text, or a table of its own:
//   [optimizer]
//   learning_rate = { range = [1e-4, 1], log = true }
//   name = { choices = ["sgd", "adamw"] }
//   momentum = { range = [0.5, 0.99], if = { "optimizer.name" = ["sgd"] } }
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::tune {

/// A range before anything is known of its key: texts.
struct RangeText {
  enum class Kind { real, log, integer, log_integer, choice };
  std::string key;
  Kind kind = Kind::real;
  std::vector<std::string> arguments = {};  // low, high and maybe the step; or the choices
  std::optional<std::pair<std::string, std::vector<std::string>>> condition = {};  // a key and its values
  std::string where = {};                                                          // for messages: "space.toml:4"
};

/// "KEY=log:1e-4:1". Error(usage) for anything else.
RangeText parse_range(const std::string& text);

/// Error(usage), with file and line, for anything but ranges.
std::vector<RangeText> parse_space_file(std::string_view text, const std::string& name);

}  // namespace weft::tune
