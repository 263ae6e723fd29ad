// Manual pages in man(7), from the parser that prints --help and the tables behind `weft keys` and `weft models`.
#pragma once

#include <string>

#include "weft/library/library.h"

namespace CLI {
class App;
}

namespace weft::cli {

/// "weft-train" for a sub-command of the program "weft", "weft" for the program itself.
std::string name_of_page(const CLI::App& command, const CLI::App& app, const std::string& program);

/// The page of the program or of one of its sub-commands.
std::string man_page(const CLI::App& command, const CLI::App& app, const Library& library, const std::string& program);

}  // namespace weft::cli
