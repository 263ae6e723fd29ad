#include "weft/device/state.h"

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft {

void State::set(const std::string& name, Tensor tensor) { tensors_.insert_or_assign(name, std::move(tensor)); }

const Tensor& State::get(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(ErrorKind::usage, "there is no state '{}'{}", name, suggestion(name, names()));
  return found->second;
}

Tensor& State::get(const std::string& name) { return const_cast<Tensor&>(static_cast<const State&>(*this).get(name)); }

Tensor State::plain(const std::string& name) const { return get(name).with_layout({}); }

Tensor& State::require(const std::string& name, const TensorType& type) {
  Tensor& tensor = get(name);
  if (tensor.shape() != type.shape || tensor.dtype() != type.dtype)
    fail(ErrorKind::shape, "state '{}' is {}, the graph wants {}; was it saved from another model?", name,
         to_string(tensor.type()), to_string(type));
  if (tensor.layout() != type.layout) tensor = tensor.with_layout(type.layout);
  return tensor;
}

std::vector<std::string> State::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

int64_t State::bytes() const {
  int64_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += align_up(tensor.bytes());
  return total;
}

}  // namespace weft
