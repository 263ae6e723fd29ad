// The state of a training run: named tensors, independent of any plan. Each keeps the layout that the last plan wanted,
// and lies in the memory of the device that ran it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/device/memory_space.h"
#include "weft/tensor/tensor.h"

namespace weft {

class State {
 public:
  /// In the host's memory.
  void set(const std::string& name, Tensor tensor);
  /// The tensor of another state: one buffer, in whatever memory, until one of the two is set or converted.
  void share(const std::string& name, const State& other, const std::string& other_name);
  void remove(const std::string& name) { tensors_.erase(name); }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// Error(usage), here and below, with the nearest name where there is none.
  const TensorType& type(const std::string& name) const { return find(name).type; }

  /// In whatever layout it has now. Error(internal) where it lies in memory that host code cannot touch.
  const Tensor& get(const std::string& name) const;
  Tensor& get(const std::string& name);
  /// A plain (row-major) copy in the host's memory.
  Tensor plain(const std::string& name) const;
  /// The same, but the tensor itself where it is plain and in the host's memory.
  Tensor plain_view(const std::string& name) const;
  /// Some of the tensor's bytes, in its own layout; without allocating.
  void read(const std::string& name, int64_t offset, std::span<std::byte> bytes) const;
  void write(const std::string& name, int64_t offset, std::span<const std::byte> bytes);

  /// Converts the tensor to the type's layout and brings it to that memory, where it is not so; returns its address
  /// there. Error(shape) where shape or dtype differ.
  std::byte* require(const std::string& name, const TensorType& type, const std::shared_ptr<MemorySpace>& memory);

  std::vector<std::string> names() const;
  int64_t bytes() const;

 private:
  struct Held {
    TensorType type;
    Tensor tensor;                        // in the host's memory, or empty
    std::shared_ptr<MemorySpace> memory;  // else it lies here
    std::shared_ptr<std::byte> buffer;    // at this address
  };
  const Held& find(const std::string& name) const;
  Held& find(const std::string& name) { return const_cast<Held&>(static_cast<const State&>(*this).find(name)); }

  std::map<std::string, Held> tensors_;
};

}  // namespace weft
