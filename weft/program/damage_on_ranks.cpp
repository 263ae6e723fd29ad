#include "weft/program/damage_on_ranks.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "weft/comm/exchange.h"

namespace weft::program {

namespace {

using nlohmann::json;

/// By part of the data, and number in it.
using Damage = std::map<std::pair<int, int64_t>, std::string>;

Damage damage_of(const RunData& data) {
  Damage damage;
  int part = 0;
  for (const data::Dataset* set : {std::as_const(data.training).get(), data.validation.get(), data.test.get()}) {
    if (set != nullptr)
      for (data::DamagedSample& sample : set->list_damaged()) damage[{part, sample.number}] = std::move(sample.message);
    ++part;
  }
  return damage;
}

std::string print(const Damage& damage) {
  json list = json::array();
  for (const auto& [place, message] : damage) list.push_back({place.first, place.second, message});
  return list.dump(-1, ' ', false, json::error_handler_t::replace);
}

void add_printed(Damage& damage, const std::string& text) {
  for (const json& sample : json::parse(text))
    damage.try_emplace({sample.at(0).get<int>(), sample.at(1).get<int64_t>()}, sample.at(2).get<std::string>());
}

}  // namespace

std::vector<std::string> damaged_on_all_ranks(const RunData& data, comm::Communicator* ranks) {
  Damage damage = damage_of(data);
  if (ranks != nullptr) {
    const std::vector<std::string> of_ranks = comm::all_gather(*ranks, print(damage), "damaged samples");
    damage.clear();
    for (const std::string& text : of_ranks) add_printed(damage, text);
  }
  std::vector<std::string> messages;
  for (auto& [place, message] : damage) messages.push_back(std::move(message));
  return messages;
}

}  // namespace weft::program
