// How deeply a TOML text may nest: its parser recurses, and a file of a few kilobytes could exhaust the stack.
#pragma once

#include <string_view>

namespace weft {

/// Error(data), beginning with `name` and the line, where brackets nest deeper than 64, or a name has more than 64
/// parts.
void require_shallow_toml(std::string_view text, std::string_view name);

}  // namespace weft
