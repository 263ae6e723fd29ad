// "Did you mean": the nearest known name to one that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Levenshtein distance, insertions, deletions and substitutions each count 1.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `name`, or "" where none is within about a third of its length.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// "; did you mean 'x'?" or, where nothing is near, "; known: a, b, c".
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

/// The same for keys such as "optimizer.momentum": within a known section only the part after its dot is compared, and
/// only that section's keys are listed.
std::string key_suggestion(std::string_view key, const std::vector<std::string>& known);

}  // namespace weft
