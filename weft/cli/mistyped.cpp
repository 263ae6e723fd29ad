#include "weft/cli/mistyped.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string_view>

#include "weft/base/names.h"
#include "weft/cli/complete_words.h"
#include "weft/spec/recipe_keys.h"
#include "weft/spec/usual_names.h"

namespace weft::cli {

namespace {

struct Answer {
  std::string_view word, say;
};

/// Commands of other programs.
constexpr Answer kUsualCommands[] = {
    {"resume", "`weft train --resume RUN` goes on with a run"},
    {"fit", "`weft train` trains"},
    {"run", "`weft train` trains"},
    {"finetune", "`weft train --init FILE` starts from given weights"},
    {"test", "`weft eval RUN` measures on the test data"},
    {"validate", "`weft eval RUN` measures on the test data"},
    {"evaluate", "`weft eval RUN` measures on the test data"},
    {"infer", "`weft predict RUN FILE` predicts"},
    {"tensorboard", "`weft train --tensorboard` writes what TensorBoard reads"},
    {"list", "run directories lie under runs/; `weft compare RUN RUN` sets them side by side"},
    {"ls", "run directories lie under runs/; `weft compare RUN RUN` sets them side by side"},
    {"convert", "`weft export RUN FILE` writes weights"},
    {"profile", "`weft explain RUN` says where the time goes"},
    {"benchmark", "`weft bench MODEL` measures the time of a step"},
    {"plan", "`weft train RECIPE --dry-run` says what a run will take"},
};

/// Options of other programs that are no keys of a recipe.
constexpr Answer kUsualOptions[] = {
    {"device", "weft computes on the CPU; --threads says on how many cores"},
    {"cuda", "weft computes on the CPU; --threads says on how many cores"},
    {"gpu", "weft computes on the CPU; --threads says on how many cores"},
    {"gpus", "weft computes on the CPU; --threads says on how many cores, and `weft launch` on how many ranks"},
    {"devices", "--threads says on how many cores, and `weft launch` on how many ranks"},
    {"nproc_per_node", "`weft launch -n RANKS` trains on several ranks"},
    {"nodes", "`weft launch --hosts A,B` trains on several hosts"},
    {"pretrained", "--init FILE starts from the weights of a safetensors file"},
    {"checkpoint_path", "--resume RUN goes on with a run; --init FILE starts from given weights"},
    {"output_dir", "--run DIR names the run directory"},
    {"out_dir", "--run DIR names the run directory"},
    {"log_dir", "--run DIR names the run directory"},
    {"verbose", "messages are complete by default; --quiet gives fewer"},
};

template <size_t size>
std::string_view usual(const Answer (&answers)[size], std::string_view word) {
  const auto* const found =
      std::find_if(std::begin(answers), std::end(answers), [&](const Answer& one) { return one.word == word; });
  return found == std::end(answers) ? std::string_view() : found->say;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : visible_commands(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// Such as " RUN FILE".
std::string positionals_of(const CLI::App& command) {
  std::string names;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) names += " " + option->get_name(/*positional=*/true);
  return names;
}

/// "--batch-size=64" as "batch_size".
std::string word_of(std::string_view option) {
  option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
  std::string word(option.substr(0, option.find('=')));
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

std::string with_hyphens(std::string word) {
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

bool knows(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What follows "unknown option 'X'".
std::string about_option(const CLI::App& command, const std::string& typed, const Library& library) {
  const std::vector<std::string> known = option_names(command);
  const std::string word = word_of(typed);
  // What nearly is an option of this command comes first.
  if (const std::string near = nearest_name("--" + with_hyphens(word), known);
      !near.empty() && edit_distance("--" + with_hyphens(word), near) == 1)
    return fmt::format("; did you mean '{}'?", near);
  if ((word == "out" || word == "o" || word == "output")) {
    if (knows(known, "--output")) return "; did you mean '--output'?";
    if (command.get_name() == "export" || command.get_name() == "pack")
      return fmt::format("; the file comes last: `{}{}`", words_of(command), positionals_of(command));
  }
  if (const std::string_view answer = usual(kUsualOptions, word); !answer.empty()) return fmt::format("; {}", answer);
  if (knows(known, "--set")) {
    std::vector<std::string> keys;
    for (const spec::RecipeKey& key : spec::recipe_keys(library)) keys.push_back(key.name);
    std::string key = knows(keys, word) ? word : spec::key_of_usual_name(word, keys);
    if (!key.empty()) {
      if (const std::string flag = "--" + with_hyphens(key); knows(known, flag))
        return fmt::format("; did you mean '{}'?", flag);
      return fmt::format("; it is a key of the recipe: --set {}=VALUE", key);
    }
  }
  return suggestion(typed.substr(0, typed.find('=')), known);
}

/// `command` has sub-commands.
std::string about_command(const CLI::App& command, const std::string& typed) {
  if (const std::string_view answer = usual(kUsualCommands, typed); command.get_parent() == nullptr && !answer.empty())
    return fmt::format("; {}", answer);
  return suggestion(typed, command_names(command));
}

/// CLI11's "Could not convert: --epochs = two", by what the option takes.
std::string about_value(const CLI::App& command, const std::string& message) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string begin = fmt::format("Could not convert: {} = ", option->get_name());
    if (!message.starts_with(begin)) continue;
    const std::string type = option->get_type_name();
    const std::string wants = type == "INT" || type == "UINT" ? "a whole number" : type == "FLOAT" ? "a number" : type;
    return fmt::format("{} wants {}, got '{}'", option->get_name(), wants, message.substr(begin.size()));
  }
  return message;
}

}  // namespace

const CLI::App& command_of(const CLI::App& app) {
  const std::vector<CLI::App*> used = app.get_subcommands();
  return used.empty() ? app : command_of(*used.front());
}

std::string words_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent == nullptr ? "" : words_of(*parent) + " ") + command.get_name();
}

std::string explain_usage(const CLI::App& app, const CLI::ParseError& error, const Library& library) {
  const CLI::App& command = command_of(app);
  const std::vector<std::string> extra = app.remaining(/*recurse=*/true);
  const bool wants_command =
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !visible_commands(command).empty();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr || (wants_command && !extra.empty())) {
    const std::string first = extra.empty() ? "" : extra.front();
    if (first.starts_with("-"))
      return fmt::format("unknown option '{}'{}", first, about_option(command, first, library));
    if (!visible_commands(command).empty())
      return fmt::format("unknown command '{}'{}", first, about_command(command, first));
    return fmt::format("'{}' is one argument too many", first);
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return about_value(command, error.what());
  if (const std::string message = error.what(); message.find(": 1 required ") != message.npos)
    return message.substr(0, message.find(':')) + " wants a value";
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    if (const std::string positionals = positionals_of(command); !positionals.empty())
      return fmt::format("{}: `{}{}`", error.what(), words_of(command), positionals);
  return error.what();
}

std::vector<std::string> with_help_as_option(std::vector<std::string> words) {
  if (words.size() < 2 || words[1] != "help") return words;
  words.erase(words.begin() + 1);
  words.emplace_back("--help");
  return words;
}

}  // namespace weft::cli
