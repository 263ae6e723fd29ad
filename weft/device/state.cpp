#include "weft/device/state.h"

#include <cstring>

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft {

namespace {

/// A copy in the host's memory, in its own layout.
Tensor copied_out(const TensorType& type, MemorySpace& memory, const std::byte* from) {
  Tensor copy(type);
  memory.copy_out(copy.data(), from, type.bytes());
  return copy;
}

}  // namespace

void State::set(const std::string& name, Tensor tensor) {
  TensorType type = tensor.type();
  tensors_.insert_or_assign(name, Held{std::move(type), std::move(tensor), nullptr, nullptr});
}

void State::share(const std::string& name, const State& other, const std::string& other_name) {
  tensors_.insert_or_assign(name, Held(other.find(other_name)));
}

const State::Held& State::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(ErrorKind::usage, "there is no state '{}'{}", name, suggestion(name, names()));
  return found->second;
}

const Tensor& State::get(const std::string& name) const {
  const Held& held = find(name);
  if (held.memory != nullptr)
    fail(ErrorKind::internal, "state '{}' lies in a device's memory; read a copy of it", name);
  return held.tensor;
}

Tensor& State::get(const std::string& name) { return const_cast<Tensor&>(static_cast<const State&>(*this).get(name)); }

Tensor State::plain(const std::string& name) const {
  const Held& held = find(name);
  if (held.memory == nullptr) return held.tensor.with_layout({});
  Tensor copy = copied_out(held.type, *held.memory, held.buffer.get());
  return copy.layout().is_plain() ? copy : copy.with_layout({});
}

Tensor State::plain_view(const std::string& name) const {
  const Held& held = find(name);
  return held.memory == nullptr && held.tensor.layout().is_plain() ? held.tensor : plain(name);
}

void State::read(const std::string& name, int64_t offset, std::span<std::byte> bytes) const {
  const Held& held = find(name);
  if (held.memory != nullptr)
    held.memory->copy_out(bytes.data(), held.buffer.get() + offset, static_cast<int64_t>(bytes.size()));
  else
    std::memcpy(bytes.data(), held.tensor.data_as<std::byte>() + offset, bytes.size());
}

void State::write(const std::string& name, int64_t offset, std::span<const std::byte> bytes) {
  Held& held = find(name);
  if (held.memory != nullptr)
    held.memory->copy_in(held.buffer.get() + offset, bytes.data(), static_cast<int64_t>(bytes.size()));
  else
    std::memcpy(held.tensor.data_as<std::byte>() + offset, bytes.data(), bytes.size());
}

std::byte* State::require(const std::string& name, const TensorType& type, const std::shared_ptr<MemorySpace>& memory) {
  Held& held = find(name);
  if (held.type.shape != type.shape || held.type.dtype != type.dtype)
    fail(ErrorKind::shape, "state '{}' is {}, the graph wants {}; was it saved from another model?", name,
         to_string(held.type), to_string(type));
  const bool is_there = held.memory == nullptr ? memory->is_host() : held.memory == memory;
  if (!is_there || held.type.layout != type.layout) {
    Tensor tensor = held.memory == nullptr ? held.tensor : copied_out(held.type, *held.memory, held.buffer.get());
    if (tensor.layout() != type.layout) tensor = tensor.with_layout(type.layout);
    if (memory->is_host()) {
      held = {type, std::move(tensor), nullptr, nullptr};
    } else {
      held = {type, {}, memory, memory->allocate(type.bytes(), "state '" + name + "'")};
      memory->copy_in(held.buffer.get(), tensor.data(), tensor.bytes());
    }
  }
  return held.memory == nullptr ? held.tensor.data_as<std::byte>() : held.buffer.get();
}

std::vector<std::string> State::names() const {
  std::vector<std::string> names;
  for (const auto& [name, held] : tensors_) names.push_back(name);
  return names;
}

int64_t State::bytes() const {
  int64_t total = 0;
  for (const auto& [name, held] : tensors_) total += align_up(held.type.bytes());
  return total;
}

}  // namespace weft
