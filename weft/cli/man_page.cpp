#include "weft/cli/man_page.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "weft/base/version.h"
#include "weft/cli/complete_words.h"
#include "weft/data/texts/utf8.h"
#include "weft/spec/built_in_recipes.h"
#include "weft/spec/key_reference.h"
#include "weft/spec/key_schema.h"
#include "weft/spec/recipe_keys.h"

namespace weft::cli {

namespace {

/// Text in which nothing is a request or an escape. Lines stay lines.
std::string roff(const std::string& text) {
  const std::string printable = data::printable_utf8(text);
  std::string out;
  for (size_t at = 0; at < printable.size();) {
    const bool begins_line = out.empty() || out.back() == '\n';
    const uint32_t point = data::next_code_point(printable, at, "help");
    if (begins_line && (point == '.' || point == '\'')) out += "\\&";
    if (point == '\\')
      out += "\\e";
    else if (point == '-')
      out += "\\-";
    else if (point == '`')
      out += "\\(ga";
    else if (point == '^')
      out += "\\(ha";
    else if (point == '~')
      out += "\\(ti";
    else if (point == '\'')
      out += "\\(aq";
    else if (point < 0x80)
      out += static_cast<char>(point);
    else
      out += fmt::format("\\[u{:04X}]", point);
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

/// A term with its explanation.
std::string entry(const std::string& term, const std::string& help) {
  return ".TP\n" + term + "\n" + (help.empty() ? "\\&" : roff(help)) + "\n";
}

std::string sentence(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

/// Lines that are set as they are.
std::string set_as_it_is(const std::string& text) {
  std::string lines = roff(text);
  while (!lines.empty() && lines.back() == '\n') lines.pop_back();
  return ".PP\n.nf\n" + lines + "\n.fi\n";
}

/// "MODEL", or "step|epoch|seconds".
std::string value_of(const CLI::Option& option) {
  const std::vector<std::string> choices = choices_of(option);
  return choices.empty() ? value_name(option) : fmt::format("{}", fmt::join(choices, "|"));
}

/// "-o FILE, --output FILE"
std::string flag_term(const CLI::Option& option) {
  std::string term;
  const auto add = [&](const std::string& name, const char* between) {
    term += (term.empty() ? "" : ", ") + bold(name);
    if (!is_switch(option)) term += between + italic(value_of(option));
  };
  for (const std::string& name : option.get_snames()) add("-" + name, " ");
  for (const std::string& name : option.get_lnames()) add("--" + name, " ");
  return term;
}

bool is_positional(const CLI::Option* option) { return option->get_positional(); }

std::string synopsis(const CLI::App& command, const std::string& words) {
  std::string line = ".B " + roff(words) + "\n";
  if (!visible_commands(command).empty()) return line + ".I COMMAND\n.RI [ OPTION ]...\n";
  for (const CLI::Option* option : command.get_options(is_positional)) {
    const std::string name = roff(option->get_name(/*positional=*/true));
    const char* dots = option->get_items_expected_max() > 1 ? "..." : "";
    line += option->get_required() ? fmt::format(".I {}{}\n", name, dots) : fmt::format(".RI [ {} ]{}\n", name, dots);
  }
  return line + ".RI [ OPTION ]...\n";
}

std::string options_of(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options(is_positional))
    text += entry(italic(option->get_name(/*positional=*/true)), sentence(option->get_description()));
  for (const CLI::Option* option : command.get_options([](const CLI::Option* one) { return !is_positional(one); }))
    text += entry(flag_term(*option), sentence(option->get_description()));
  return text;
}

/// What the library holds, on the page where it is looked for.
std::string tables_of(const std::string& command, const Library& library) {
  std::string text;
  if (command == "models") {
    text += ".SH MODELS\n";
    for (const models::ModelEntry& model : library.models)
      text += entry(bold(model.name), model.options.empty() ? sentence(model.summary)
                                                            : fmt::format("{} Options: {}.", sentence(model.summary),
                                                                          fmt::join(model.options, "; ")));
  } else if (command == "recipes") {
    text += ".SH RECIPES\n";
    for (const spec::BuiltInRecipe& recipe : spec::built_in_recipes())
      text += entry(bold(recipe.name), recipe.description());
  } else if (command == "data") {
    text += ".SH KINDS OF DATA\n";
    for (const data::DatasetKind& kind : library.data) text += entry(bold(kind.form), kind.summary);
  } else if (command == "keys") {
    text += ".SH KEYS\n";
    for (const spec::RecipeKey& key : spec::recipe_keys(library, {spec::kAnyGroup})) {
      const std::string readers = key.read_by.empty() ? "" : fmt::format(" Read by {}.", fmt::join(key.read_by, ", "));
      text += entry(bold(key.name) + " = " + italic(spec::values_of(key)),
                    fmt::format("{} Default: {}.{}", sentence(key.help), spec::default_of(key), readers));
    }
  }
  return text;
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n.TP\n0\nSuccess.\n.TP\n1\nFailure.\n.TP\n2\nWrong usage.\n.TP\n75\nA rank was lost.\n"
    ".TP\n130\nInterrupted, after a checkpoint.\n";

}  // namespace

std::string name_of_page(const CLI::App& command, const CLI::App& app, const std::string& program) {
  return &command == &app ? program : program + "-" + command.get_name();
}

std::string man_page(const CLI::App& command, const CLI::App& app, const Library& library, const std::string& program) {
  const bool is_whole = &command == &app;
  const std::string name = name_of_page(command, app, program);
  const std::string words = is_whole ? program : program + " " + command.get_name();
  std::string capitals = name;
  for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string summary = command.get_description();
  if (!summary.empty() && summary.back() == '.') summary.pop_back();
  std::string page = fmt::format(".TH {} 1 \"\" \"weft {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", roff(capitals),
                                 roff(std::string(version())), roff(name), roff(summary));
  page += ".SH SYNOPSIS\n" + synopsis(command, words);
  page += ".SH DESCRIPTION\n" + roff(sentence(command.get_description())) + "\n";
  const std::string tables = is_whole ? "" : tables_of(command.get_name(), library);
  const std::string footer = command.get_footer();
  if (!footer.empty() && command.get_name() != "data") page += set_as_it_is(footer);  // whose kinds are a table here
  const std::vector<const CLI::App*> commands = visible_commands(command);
  if (!commands.empty()) {
    page += ".SH COMMANDS\n";
    for (const CLI::App* one : commands) {
      page += entry(bold(one->get_name()), sentence(one->get_description()));
      if (!is_whole) page += ".RS\n" + options_of(*one) + ".RE\n";
    }
  }
  page += ".SH OPTIONS\n" + options_of(command) + tables + kExitStatus;
  std::vector<std::string> others;
  if (is_whole)
    for (const CLI::App* one : commands) others.push_back(name_of_page(*one, app, program));
  else
    others = {program, program + "-keys", program + "-models", program + "-train"};
  std::erase(others, name);
  std::string references;
  for (const std::string& other : others)
    references += fmt::format(".BR {} (1){}\n", roff(other), &other == &others.back() ? "" : ",");
  return page + ".SH SEE ALSO\n" + references;
}

}  // namespace weft::cli
