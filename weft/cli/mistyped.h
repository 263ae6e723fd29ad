// What to say of words on the command line that are not known: the nearest one, or what people know from other
// programs.
#pragma once

#include <string>
#include <vector>

#include "weft/library/library.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace weft::cli {

/// The command that was asked for, down to the last sub-command; `app` itself where none was.
const CLI::App& command_of(const CLI::App& app);
/// "weft cluster probe"
std::string words_of(const CLI::App& command);

/// One line without the program's name: what is wrong with the words that `app` could not parse, and what to type.
std::string explain_usage(const CLI::App& app, const CLI::ParseError& error, const Library& library);

/// `weft help train` as `weft train --help`; other words as they are. The first word is the program.
std::vector<std::string> with_help_as_option(std::vector<std::string> words);

}  // namespace weft::cli
