#include "weft/step/states/state_sharding.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/parse_number.h"

namespace weft::step {

namespace {

constexpr std::string_view kOn = " on ranks ";

}  // namespace

bool is_held(const StateSharding& sharding, int64_t rank) {
  return sharding.on.empty() || std::find(sharding.on.begin(), sharding.on.end(), rank) != sharding.on.end();
}

std::string to_string(const StateSharding& sharding) {
  std::string text = weft::to_string(static_cast<const Sharding&>(sharding));
  if (!sharding.on.empty()) text += fmt::format("{}{}", kOn, fmt::join(sharding.on, ","));
  return text;
}

StateSharding parse_state_sharding(std::string_view text) {
  const size_t on = text.find(kOn);
  StateSharding sharding(parse_sharding(text.substr(0, on)));
  if (on == text.npos) return sharding;
  for (std::string_view rest = text.substr(on + kOn.size()); !rest.empty();) {
    const size_t comma = rest.find(',');
    const auto rank = parse_number<int>(std::string(rest.substr(0, comma)));
    if (!rank || *rank < 0 || (!sharding.on.empty() && *rank <= sharding.on.back()))
      fail(ErrorKind::data, "'{}' names no ranks; write them as '{}0,2'", text, kOn.substr(1));
    sharding.on.push_back(*rank);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return sharding;
}

}  // namespace weft::step
