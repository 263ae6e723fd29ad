// What a shell offers at the cursor. Commands and flags come from the parser that prints --help, names and keys from
// the library, so that programs with their own models, data and keys complete these, too.
#pragma once

#include <string>
#include <vector>

#include "weft/library/library.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weft::cli {

/// The hidden command through which the scripts of `weft completion` ask: the words follow it.
inline constexpr const char* kCompleteWords = "complete-words";

struct Candidate {
  std::string text;  // the whole word; one that ends in "=", ":" or "/" goes on
  std::string help;  // a line, or nothing
};

/// `words`: those after the program's name; the last one is begun, or empty.
std::vector<Candidate> complete_words(const CLI::App& app, const Library& library,
                                      const std::vector<std::string>& words);

/// Prints them, a line each: the word, and behind a tab the help. Exit code 0, whatever the words are.
int print_candidates(const CLI::App& app, const Library& library, const std::vector<std::string>& words);

/// What a value of the option is called in --help: "MODEL|FILE", "KEY=VALUE"; without its range or choices.
std::string value_name(const CLI::Option& option);
/// Those of an option that allows no others.
std::vector<std::string> choices_of(const CLI::Option& option);
/// Without a value behind it.
bool is_switch(const CLI::Option& option);
/// Sub-commands that --help lists.
std::vector<const CLI::App*> visible_commands(const CLI::App& app);

}  // namespace weft::cli
