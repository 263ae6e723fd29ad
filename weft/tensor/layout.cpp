#include "weft/tensor/layout.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <numeric>

#include "weft/base/error.h"

namespace weft {

namespace {
constexpr int64_t kLargestBlock = 65536;  // elements of all blocks together; those in use have at most 4096
}  // namespace

std::string to_string(const Layout& layout) {
  if (layout.is_plain()) return "";
  std::vector<int> order = layout.order;
  if (order.empty()) {
    int rank = 0;
    for (const auto& block : layout.blocks) rank = std::max(rank, block.axis + 1);
    order.resize(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
  }
  std::string tag;
  for (const int axis : order) tag += static_cast<char>((block_of(layout, axis) > 1 ? 'A' : 'a') + axis);
  for (const auto& block : layout.blocks) tag += std::to_string(block.size) + static_cast<char>('a' + block.axis);
  return tag;
}

Layout parse_layout(std::string_view tag, int rank) {
  Layout layout;
  if (tag.empty()) return layout;
  size_t at = 0;
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  const auto bad = [&] { fail(ErrorKind::data, "'{}' is no layout of a tensor with {} dimensions", tag, rank); };
  for (; at < tag.size() && std::isalpha(static_cast<unsigned char>(tag[at])); ++at) {
    const int axis = std::tolower(static_cast<unsigned char>(tag[at])) - 'a';
    if (axis >= rank || seen[static_cast<size_t>(axis)]) bad();
    seen[static_cast<size_t>(axis)] = true;
    layout.order.push_back(axis);
  }
  if (static_cast<int>(layout.order.size()) != rank) bad();
  int64_t product = 1;
  while (at < tag.size()) {
    int size = 0;
    while (at < tag.size() && std::isdigit(static_cast<unsigned char>(tag[at]))) {
      size = size * 10 + (tag[at++] - '0');
      if (size > kLargestBlock) bad();
    }
    product *= size;
    if (size < 2 || product > kLargestBlock || at >= tag.size()) bad();
    const int axis = tag[at++] - 'a';
    if (axis < 0 || axis >= rank) bad();
    layout.blocks.push_back({axis, size});
  }
  if (to_string(layout) != tag) bad();
  return canonical(std::move(layout));
}

Layout channels_last(int rank) {
  Layout layout;
  layout.order.push_back(0);
  for (int axis = 2; axis < rank; ++axis) layout.order.push_back(axis);
  if (rank > 1) layout.order.push_back(1);
  return canonical(std::move(layout));
}

Layout canonical(Layout layout) {
  const bool row_major =
      std::adjacent_find(layout.order.begin(), layout.order.end(), std::greater_equal<>()) == layout.order.end();
  if (layout.blocks.empty() && row_major) layout.order.clear();
  return layout;
}

int64_t block_of(const Layout& layout, int axis) {
  int64_t product = 1;
  for (const auto& block : layout.blocks)
    if (block.axis == axis) product *= block.size;
  return product;
}

int64_t blocks_along(const Shape& shape, const Layout& layout, int axis) {
  const int64_t block = block_of(layout, axis);
  return (shape[axis] + block - 1) / block;
}

int64_t storage_elements(const Shape& shape, const Layout& layout) {
  int64_t total = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) total *= blocks_along(shape, layout, axis) * block_of(layout, axis);
  return total;
}

std::vector<std::vector<int64_t>> axis_offsets(const Shape& shape, const Layout& layout) {
  std::vector<std::vector<int64_t>> offsets;
  std::vector<std::vector<int64_t>> rest;  // what the blocks inside have left of each index
  for (int axis = 0; axis < shape.rank(); ++axis) {
    offsets.emplace_back(static_cast<size_t>(shape[axis]), 0);
    rest.emplace_back(static_cast<size_t>(shape[axis]));
    std::iota(rest.back().begin(), rest.back().end(), 0);
  }
  int64_t stride = 1;
  for (auto block = layout.blocks.rbegin(); block != layout.blocks.rend(); ++block) {
    const auto axis = static_cast<size_t>(block->axis);
    for (size_t index = 0; index < rest[axis].size(); ++index) {
      offsets[axis][index] += rest[axis][index] % block->size * stride;
      rest[axis][index] /= block->size;
    }
    stride *= block->size;
  }
  for (int at = shape.rank() - 1; at >= 0; --at) {
    const int axis = layout.order.empty() ? at : layout.order[static_cast<size_t>(at)];
    const auto position = static_cast<size_t>(axis);
    for (size_t index = 0; index < rest[position].size(); ++index)
      offsets[position][index] += rest[position][index] * stride;
    stride *= blocks_along(shape, layout, axis);
  }
  return offsets;
}

int64_t storage_offset(const Shape& shape, const Layout& layout, const std::vector<int64_t>& index) {
  const auto offsets = axis_offsets(shape, layout);
  int64_t offset = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) offset += offsets[axis][static_cast<size_t>(index[axis])];
  return offset;
}

}  // namespace weft
