#include "weft/program/shared_state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "weft/base/files.h"
#include "weft/base/rng.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::program {

namespace {

using nlohmann::json;
constexpr std::string_view kWhat = "state of the first step";

json description_of(const State& state) {
  json tensors = json::array();
  for (const std::string& name : state.names()) {
    const TensorType& type = state.type(name);
    tensors.push_back({{"name", name}, {"dtype", weft::name_of(type.dtype)}, {"shape", type.shape.dims()}});
  }
  return tensors;
}

}  // namespace

void take_first_state(comm::Communicator* ranks, State& state) {
  if (ranks == nullptr) return;
  const json tensors =
      json::parse(comm::broadcast(*ranks, 0, comm::is_first(ranks) ? description_of(state).dump() : "", kWhat));
  State taken;
  for (const json& entry : tensors) {
    const std::string name = entry.at("name");
    Tensor tensor = comm::is_first(ranks) ? state.plain(name)
                                          : Tensor(parse_dtype(entry.at("dtype").get<std::string>()).value(),
                                                   Shape(entry.at("shape").get<std::vector<int64_t>>()));
    comm::broadcast(*ranks, 0, {tensor.data_as<std::byte>(), static_cast<size_t>(tensor.bytes())}, kWhat);
    taken.set(name, std::move(tensor));
  }
  state = std::move(taken);
}

std::string fingerprint_of(const State& state) {
  uint64_t hash = hash_name(description_of(state).dump());
  for (const std::string& name : state.names()) {
    const Tensor tensor = state.plain(name);
    hash = mix(hash, crc32_of(tensor.data(), static_cast<size_t>(tensor.bytes())));
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace weft::program
