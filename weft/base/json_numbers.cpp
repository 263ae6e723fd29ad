#include "weft/base/json_numbers.h"

#include <nlohmann/json.hpp>

namespace weft {

using nlohmann::json;

int64_t whole_number(const json& value) { return value.get_ref<const json::number_integer_t&>(); }

uint64_t unsigned_number(const json& value) { return value.get_ref<const json::number_unsigned_t&>(); }

std::vector<int64_t> whole_numbers(const json& list) {
  std::vector<int64_t> numbers;
  for (const json& value : list) numbers.push_back(whole_number(value));
  return numbers;
}

}  // namespace weft
