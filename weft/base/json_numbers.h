// Whole numbers out of JSON that comes from outside: nlohmann makes some integer of 1e42 without a word.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace weft {

/// nlohmann's exceptions for anything but a whole number of 64 bits.
int64_t whole_number(const nlohmann::json& value);
uint64_t unsigned_number(const nlohmann::json& value);
std::vector<int64_t> whole_numbers(const nlohmann::json& list);

}  // namespace weft
