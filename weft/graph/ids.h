// Strong names for positions in a graph's tables.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft {

struct ValueId {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

struct NodeId {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  friend auto operator<=>(const NodeId&, const NodeId&) = default;
};

}  // namespace weft

template <>
struct std::hash<weft::ValueId> {
  size_t operator()(const weft::ValueId& id) const noexcept { return static_cast<size_t>(id.index); }
};
