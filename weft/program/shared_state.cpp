#include "weft/program/shared_state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "weft/base/files.h"
#include "weft/base/rng.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/graph/tensor_parts.h"
#include "weft/step/optimizers/optimizer.h"
#include "weft/step/states/state_holders.h"

namespace weft::program {

namespace {

using nlohmann::json;
constexpr std::string_view kWhat = "state of the first step";

json entry_of(const std::string& name, const TensorType& type) {
  return {{"name", name}, {"dtype", weft::name_of(type.dtype)}, {"shape", type.shape.dims()}};
}

}  // namespace

State take_first_tensors(comm::Communicator& ranks, const std::vector<SourceTensor>& tensors,
                         const std::function<Tensor(const std::string& name)>& read, const step::Shardings& shardings,
                         const Mesh& mesh) {
  json described = json::array();
  for (const SourceTensor& tensor : tensors) described.push_back(entry_of(tensor.name, tensor.type));
  described = json::parse(comm::broadcast(ranks, 0, described.dump(), kWhat));
  State taken;
  for (const json& entry : described) {
    const std::string name = entry.at("name");
    Tensor tensor = comm::is_first(&ranks) ? read(name)
                                           : Tensor(parse_dtype(entry.at("dtype").get<std::string>()).value(),
                                                    Shape(entry.at("shape").get<std::vector<int64_t>>()));
    comm::broadcast(ranks, 0, {tensor.data_as<std::byte>(), static_cast<size_t>(tensor.bytes())}, kWhat);
    const auto shared = shardings.find(name);
    if (shared != shardings.end() && !is_held(shared->second, ranks.rank())) continue;
    taken.set(name, shared == shardings.end()
                        ? std::move(tensor)
                        : part_of(tensor, shared->second, coordinate_of(shared->second, mesh, ranks.rank())));
  }
  return taken;
}

void take_first_state(comm::Communicator* ranks, State& state, const step::Shardings& shardings, const Mesh& mesh) {
  if (ranks == nullptr) return;
  std::vector<SourceTensor> tensors;
  if (comm::is_first(ranks))
    for (const std::string& name : state.names())
      tensors.push_back({name, {state.type(name).dtype, state.type(name).shape, {}}});
  state = take_first_tensors(
      *ranks, tensors, [&](const std::string& name) { return state.plain(name); }, shardings, mesh);
}

State whole_weights(comm::Communicator& ranks, const State& state, const step::Shardings& shardings, const Mesh& mesh) {
  constexpr std::string_view kWeights = "weights of an evaluation";
  State whole;
  std::set<std::string> names;  // on all ranks the same
  for (const std::string& name : state.names()) names.insert(name);
  for (const auto& [name, sharding] : shardings) names.insert(name);
  for (const std::string& name : names) {
    if (name.starts_with(step::kSlotPrefix)) continue;
    const auto shared = shardings.find(name);
    const bool is_everywhere = shared == shardings.end() || shared->second.on.empty();
    if (shared == shardings.end() || (is_everywhere && state.type(name).shape == shared->second.whole)) {
      whole.share(name, state, name);
      continue;
    }
    const DType dtype = is_everywhere ? state.type(name).dtype : DType::f32;
    Tensor tensor(dtype, shared->second.whole);
    int64_t number = 0;
    for (const int holder : holders_of(shared->second, mesh)) {
      Tensor part = ranks.rank() == holder ? state.plain(name) : Tensor(dtype, part_shape(shared->second));
      comm::broadcast(ranks, holder, {part.data_as<std::byte>(), static_cast<size_t>(part.bytes())}, kWeights);
      put_part(tensor, part, shared->second, number++);
    }
    whole.set(name, std::move(tensor));
  }
  return whole;
}

std::string fingerprint_of(const State& state, const step::Shardings& shardings) {
  json described = json::array();
  for (const auto& [name, sharding] : shardings) described.push_back({name, to_string(sharding)});
  for (const std::string& name : state.names()) {
    const auto shared = shardings.find(name);
    if (shared == shardings.end() || shared->second.on.empty()) described.push_back(entry_of(name, state.type(name)));
  }
  uint64_t hash = hash_name(described.dump());
  for (const std::string& name : state.names()) {
    if (shardings.contains(name)) continue;
    const Tensor tensor = state.plain(name);
    hash = mix(hash, crc32_of(tensor.data(), static_cast<size_t>(tensor.bytes())));
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace weft::program
