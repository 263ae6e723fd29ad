#include "weft/cli/complete_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/passes/pipeline.h"
#include "weft/spec/built_in_recipes.h"
#include "weft/spec/key_reference.h"
#include "weft/spec/key_schema.h"
#include "weft/spec/recipe_keys.h"

namespace weft::cli {

namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What the words before the last one mean.
struct Place {
  const CLI::App* command = nullptr;
  const CLI::Option* waiting = nullptr;  // a flag whose value comes next
  size_t positionals = 0;                // words that are no flags, after the command
  bool only_words = false;               // behind "--"
  std::string model = {};                // of --model, whose options may be set
};

bool is_named(const CLI::Option& option, const std::string& word) {
  const auto has = [&](const std::vector<std::string>& names, size_t dashes) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return word == std::string(dashes, '-') + name; });
  };
  return has(option.get_lnames(), 2) || has(option.get_snames(), 1);
}

const CLI::Option* find_flag(const CLI::App& command, const std::string& word) {
  for (const CLI::Option* option : command.get_options())
    if (is_named(*option, word)) return option;
  return nullptr;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : visible_commands(app))
    if (command->get_name() == name) return command;
  return nullptr;
}

class Completer {
 public:
  Completer(const CLI::App& app, const Library& library) : app_(app), library_(library) {}

  std::vector<Candidate> complete(const std::vector<std::string>& words) {
    place_.command = &app_;
    for (size_t index = 0; index + 1 < words.size(); ++index) pass(words[index]);
    word_ = words.empty() ? "" : words.back();
    const CLI::App& command = *place_.command;
    if (place_.waiting != nullptr) {
      add_values(*place_.waiting, "");
    } else if (const size_t equals = word_.find('='); !place_.only_words && is_flag(word_) && equals != word_.npos) {
      if (const CLI::Option* option = find_flag(command, word_.substr(0, equals)); option != nullptr) {
        const std::string before = word_.substr(0, equals + 1);
        word_.erase(0, equals + 1);
        add_values(*option, before);
      }
    } else if (!place_.only_words && word_.starts_with("-")) {
      add_flags(command);
    } else {
      add_words(command);
    }
    return std::move(candidates_);
  }

 private:
  static bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

  void pass(const std::string& word) {
    if (place_.waiting != nullptr) {
      if (is_named(*place_.waiting, "--model")) place_.model = word;
      place_.waiting = nullptr;
    } else if (word == "--" && place_.command->get_name() == "launch") {
      // What is started is a command of its own.
      place_ = {.command = &app_};
      launched_ = true;
    } else if (word == "--") {
      place_.only_words = true;
    } else if (!place_.only_words && is_flag(word)) {
      const CLI::Option* option = find_flag(*place_.command, word);
      if (option != nullptr && !is_switch(*option)) place_.waiting = option;
      if (word.starts_with("--model=")) place_.model = word.substr(8);
    } else if (const CLI::App* command = find_command(*place_.command, word);
               command != nullptr && place_.positionals == 0) {
      place_ = {.command = command};
    } else {
      ++place_.positionals;
    }
  }

  /// Where it begins like the word.
  void add(const std::string& text, const std::string& help) {
    if (text.starts_with(word_) && text.find_first_of("\t\n") == text.npos) candidates_.push_back({text, help});
  }

  void add_flags(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames()) add("--" + name, option->get_description());
    if (word_ != "-") return;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_snames()) add("-" + name, option->get_description());
  }

  /// Sub-commands, or what stands at this place; where nothing does, flags.
  void add_words(const CLI::App& command) {
    if (!visible_commands(command).empty() && place_.positionals == 0) {
      for (const CLI::App* one : visible_commands(command))
        if (!launched_ || one->get_name() == "train") add(one->get_name(), one->get_description());
      return;
    }
    std::vector<const CLI::Option*> positionals;
    for (const CLI::Option* option : command.get_options())
      if (option->get_positional()) positionals.push_back(option);
    const bool repeats = !positionals.empty() && positionals.back()->get_items_expected_max() > 1;
    if (place_.positionals < positionals.size())
      add_values(*positionals[place_.positionals], "");
    else if (repeats)
      add_values(*positionals.back(), "");
    else if (word_.empty() && !place_.only_words)
      add_flags(command);
  }

  /// Values of the option that begin like the word, with `before` in front.
  void add_values(const CLI::Option& option, const std::string& before) {
    const size_t first = candidates_.size();
    for (const std::string& choice : choices_of(option)) add(choice, "");
    std::string names = value_name(option);
    if (names.ends_with("KEY=VALUE")) {
      add_assignments(names.substr(0, names.size() - std::string("KEY=VALUE").size()));
      names.clear();
    }
    while (!names.empty()) {
      const size_t end = std::min(names.find('|'), names.size());
      add_named(names.substr(0, end));
      names.erase(0, end + 1);
    }
    if (candidates_.size() == first && choices_of(option).empty()) add_choices_of_key(option);
    for (size_t index = first; index < candidates_.size(); ++index) candidates_[index].text.insert(0, before);
  }

  void add_named(const std::string& name) {
    if (name == "MODEL")
      for (const models::ModelEntry& model : library_.models) add(model.name, model.summary);
    else if (name == "RECIPE")
      for (const spec::BuiltInRecipe& recipe : spec::built_in_recipes()) add(recipe.name, recipe.description());
    else if (name == "OP")
      for (const auto& [op, definition] : library_.ops.all()) add(op, definition.summary);
    else if (name == "PASS")
      for (const passes::Pass& pass : passes::pipeline()) add(pass.name, pass.summary);
    else if (name == "COMMAND")
      for (const CLI::App* command : visible_commands(app_)) add(command->get_name(), command->get_description());
    else if (name == "KEY")
      add_keys();
    else if (name == "SPEC")
      add_data();
    else if (name == "FILE" || name == "DIR" || name == "RUN")
      add_paths(word_, name);
  }

  /// A flag that stands for a key of the recipe has its choices.
  void add_choices_of_key(const CLI::Option& option) {
    if (option.get_lnames().empty()) return;
    std::string name = option.get_lnames().front();
    std::replace(name.begin(), name.end(), '-', '_');
    for (const spec::RecipeKey& key : spec::recipe_keys(library_))
      if (key.name == name) add_values_of_key(key, "");
  }

  void add_values_of_key(const Key& key, const std::string& before) {
    for (const std::string& choice : key.choices) add(before + choice, "");
    if (std::holds_alternative<bool>(key.value))
      for (const char* value : {"true", "false"}) add(before + value, "");
    if (key.automatic) add(before + "auto", "weft chooses");
  }

  /// "optimizer.name=", or behind the sign what may stand there.
  void add_assignments(const std::string& section) {
    for (const spec::RecipeKey& key : spec::recipe_keys(library_)) {
      if (!key.name.starts_with(section)) continue;
      if (key.name == "model.name" && word_.starts_with("model.name="))
        for (const models::ModelEntry& model : library_.models) add("model.name=" + model.name, model.summary);
      else if (word_.starts_with(key.name + "="))
        add_values_of_key(key, key.name + "=");
      else
        add(key.name + "=", key.help);
    }
    if (!std::string("model.").starts_with(section)) return;
    std::vector<std::string> names;  // models share options
    for (const models::ModelEntry& model : library_.models)
      if (place_.model.empty() || place_.model == model.name)
        for (const std::string& option : model.options) {
          const size_t equals = std::min(option.find('='), option.size());
          const std::string name = "model." + option.substr(0, equals) + "=";
          if (std::find(names.begin(), names.end(), name) != names.end()) continue;
          names.push_back(name);
          if (!word_.starts_with(name)) add(name, option.substr(std::min(equals + 1, option.size())));
        }
  }

  /// Keys, and tables of keys.
  void add_keys() {
    std::string table;
    for (const spec::RecipeKey& key : spec::recipe_keys(library_, {spec::kAnyGroup})) {
      const std::string section = spec::section_of(key.name);
      if (!section.empty() && section != table) add(section, "all keys of [" + section + "]");
      table = section;
      add(key.name, key.help);
    }
  }

  /// "cifar10:", and paths behind it. A kind that can stand alone, "fashion-mnist[:DIR]", does.
  void add_data() {
    const size_t colon = word_.find(':');
    for (const data::DatasetKind& kind : library_.data) {
      const bool takes_words = kind.form.size() > kind.name.size() && kind.form[kind.name.size()] == ':';
      if (colon == word_.npos) add(kind.name + (takes_words ? ":" : ""), kind.summary);
    }
    if (colon == word_.npos) return;
    const std::string before = word_.substr(0, colon + 1);
    const size_t first = candidates_.size();
    add_paths(word_.substr(colon + 1), "FILE");
    for (size_t index = first; index < candidates_.size(); ++index) candidates_[index].text.insert(0, before);
  }

  /// Of a run only directories, of which those that hold a run are whole words. Hidden names where they are asked for.
  void add_paths(const std::string& begun, const std::string& kind) {
    const size_t slash = begun.rfind('/');
    const std::string folder = slash == begun.npos ? "" : begun.substr(0, slash + 1);
    const std::string name_begins = begun.substr(folder.size());
    std::string opened = folder.empty() ? "." : folder;
    if (const char* home = std::getenv("HOME"); opened.starts_with("~/") && home != nullptr) opened.replace(0, 1, home);
    std::error_code code;
    std::vector<Candidate> found;
    for (fs::directory_iterator at(opened, code), end; !code && at != end; at.increment(code)) {
      const std::string name = at->path().filename().string();
      std::error_code unreadable;
      const bool is_folder = at->is_directory(unreadable);
      if (!name.starts_with(name_begins) || (name[0] == '.' && !name_begins.starts_with('.'))) continue;
      if (name.find_first_of("\t\n") != name.npos || (kind != "FILE" && !is_folder)) continue;
      const bool is_run = is_folder && fs::exists(at->path() / "spec.toml", unreadable);
      const bool goes_on = is_folder && !(is_run && kind == "RUN");
      found.push_back({folder + name + (goes_on ? "/" : ""), is_run ? "a run" : ""});
    }
    std::sort(found.begin(), found.end(),
              [](const Candidate& one, const Candidate& other) { return one.text < other.text; });
    candidates_.insert(candidates_.end(), found.begin(), found.end());
  }

  const CLI::App& app_;
  const Library& library_;
  Place place_;
  std::string word_;
  bool launched_ = false;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::string value_name(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name.substr(0, name.find_first_of(": "));
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  const size_t begin = name.find('{'), end = name.rfind('}');
  if (begin == name.npos || end == name.npos || end < begin) return {};
  std::vector<std::string> choices;
  std::string rest = name.substr(begin + 1, end - begin - 1);
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    choices.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 1);
  }
  return choices;
}

bool is_switch(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) commands.push_back(command);
  return commands;
}

std::vector<Candidate> complete_words(const CLI::App& app, const Library& library,
                                      const std::vector<std::string>& words) {
  return Completer(app, library).complete(words);
}

int print_candidates(const CLI::App& app, const Library& library, const std::vector<std::string>& words) {
  try {
    for (const Candidate& candidate : complete_words(app, library, words)) {
      const std::string help = first_line(candidate.help);
      fmt::print("{}{}{}\n", candidate.text, help.empty() ? "" : "\t", help);
    }
  } catch (const std::exception&) {  // a shell that asks has no place for messages
  }
  return 0;
}

}  // namespace weft::cli
