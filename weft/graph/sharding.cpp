#include "weft/graph/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>

#include "weft/base/error.h"
#include "weft/base/parse_number.h"

namespace weft {

namespace {

bool is_axis_name(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalpha(c) || c == '_'; });
}

std::string to_string(const MeshAxis& axis) { return fmt::format("{}={}", axis.name, axis.size); }

/// nullopt where it is no "data=4".
std::optional<MeshAxis> parse_axis(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) return std::nullopt;
  const std::optional<int64_t> size = parse_number<int64_t>(std::string(text.substr(equals + 1)));
  if (!is_axis_name(text.substr(0, equals)) || !size || *size < 1) return std::nullopt;
  return MeshAxis{std::string(text.substr(0, equals)), *size};
}

std::vector<std::string_view> parts_between_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == text.npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

/// "64,3,7,7"; nullopt where it is none.
std::optional<Shape> parse_dims(std::string_view text) {
  std::vector<int64_t> dims;
  if (text.empty()) return Shape(dims);
  for (const std::string_view part : parts_between_commas(text)) {
    const std::optional<int64_t> dim = parse_number<int64_t>(std::string(part));
    if (!dim || *dim < 0) return std::nullopt;
    dims.push_back(*dim);
  }
  return Shape(std::move(dims));
}

/// Nothing where a part of it makes no sense.
std::optional<Sharding> read_sharding(std::string_view text) {
  constexpr std::string_view kOf = " of (";
  const size_t of = text.find(kOf);
  if (of == text.npos || !text.ends_with(')')) return std::nullopt;
  const std::optional<Shape> whole = parse_dims(text.substr(of + kOf.size(), text.size() - of - kOf.size() - 1));
  if (!whole || !has_bounded_size(*whole)) return std::nullopt;
  Sharding sharding{.whole = *whole};
  std::string_view terms = text.substr(0, of);
  if (terms == "replicated") return sharding;
  while (!terms.empty()) {
    const size_t open = terms.find('('), close = terms.find(')');
    if (open == terms.npos || close == terms.npos || close < open) return std::nullopt;
    const std::string_view kind = terms.substr(0, open), inside = terms.substr(open + 1, close - open - 1);
    if (kind == "split") {
      for (const std::string_view part : parts_between_commas(inside)) {
        sharding.split.push_back(part == "-" ? std::nullopt : parse_axis(part));
        if (part != "-" && !sharding.split.back()) return std::nullopt;
      }
      if (static_cast<int>(sharding.split.size()) != whole->rank()) return std::nullopt;
    } else {
      const std::optional<MeshAxis> axis = parse_axis(inside);
      if (!axis || (kind != "flat" && kind != "partial")) return std::nullopt;
      (kind == "flat" ? sharding.flat : sharding.partial) = axis;
    }
    terms.remove_prefix(close + 1);
    if (terms.starts_with(' ')) terms.remove_prefix(1);
  }
  return sharding;
}

}  // namespace

Mesh::Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  std::set<std::string> names;
  for (const MeshAxis& axis : axes_) {
    if (axis.size < 1)
      fail(ErrorKind::usage, "the axis '{}' of the mesh has {} ranks; give at least 1", axis.name, axis.size);
    if (!names.insert(axis.name).second)
      fail(ErrorKind::usage, "the mesh has two axes '{}'; name each once", axis.name);
  }
}

int64_t Mesh::size() const {
  int64_t ranks = 1;
  for (const MeshAxis& axis : axes_) ranks *= axis.size;
  return ranks;
}

int64_t Mesh::size_of(std::string_view axis) const {
  for (const MeshAxis& one : axes_)
    if (one.name == axis) return one.size;
  return 1;
}

int64_t Mesh::coordinate(int64_t rank, std::string_view axis) const {
  for (size_t at = axes_.size(); at-- > 0; rank /= axes_[at].size)
    if (axes_[at].name == axis) return rank % axes_[at].size;
  return 0;
}

std::vector<int> Mesh::group_of(int64_t rank, std::string_view axis) const {
  int64_t stride = 1;  // from a rank to its neighbour on the axis
  for (size_t at = axes_.size(); at-- > 0 && axes_[at].name != axis;) stride *= axes_[at].size;
  const int64_t count = size_of(axis), first = rank - coordinate(rank, axis) * (count == 1 ? 0 : stride);
  std::vector<int> group;
  for (int64_t place = 0; place < count; ++place) group.push_back(static_cast<int>(first + place * stride));
  return group;
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) text += (text.empty() ? "" : ",") + to_string(axis);
  return text;
}

Mesh parse_mesh(std::string_view text) {
  std::vector<MeshAxis> axes;
  for (const std::string_view part : parts_between_commas(text)) {
    const std::optional<MeshAxis> axis = parse_axis(part);
    if (!axis)
      fail(ErrorKind::usage, "'{}' is no mesh; write its axes with their ranks, such as data=4,tensor=2", text);
    axes.push_back(*axis);
  }
  return Mesh(std::move(axes));
}

bool Sharding::is_replicated() const {
  return !flat && !partial &&
         std::none_of(split.begin(), split.end(), [](const auto& axis) { return axis.has_value(); });
}

int64_t flat_part_elements(int64_t elements, int64_t ranks) {
  constexpr int64_t kUnit = kAlignment / 4;  // elements of f32 in a cache line
  const int64_t units = (elements + kUnit - 1) / kUnit;
  return (units + ranks - 1) / ranks * kUnit;
}

Shape part_shape(const Sharding& sharding) {
  if (sharding.flat) return {flat_part_elements(sharding.whole.elements(), sharding.flat->size)};
  Shape shape = sharding.whole;
  for (size_t at = 0; at < sharding.split.size(); ++at) {
    if (!sharding.split[at]) continue;
    const auto axis = static_cast<int>(at);
    if (shape[axis] % sharding.split[at]->size != 0)
      fail(ErrorKind::shape,
           "dimension {} of {} cannot be split into {} equal parts; choose another size of the axis '{}'", at,
           to_string(sharding.whole), sharding.split[at]->size, sharding.split[at]->name);
    shape[axis] /= sharding.split[at]->size;
  }
  return shape;
}

std::string to_string(const Sharding& sharding) {
  std::string text;
  const auto add = [&](const std::string& term) { text += (text.empty() ? "" : " ") + term; };
  if (sharding.flat) add(fmt::format("flat({})", to_string(*sharding.flat)));
  if (!sharding.split.empty()) {
    std::string axes;
    for (const auto& axis : sharding.split) axes += (axes.empty() ? "" : ",") + (axis ? to_string(*axis) : "-");
    add(fmt::format("split({})", axes));
  }
  if (sharding.partial) add(fmt::format("partial({})", to_string(*sharding.partial)));
  return fmt::format("{} of {}", text.empty() ? "replicated" : text, to_string(sharding.whole));
}

Sharding parse_sharding(std::string_view text) {
  const std::optional<Sharding> sharding = read_sharding(text);
  if (!sharding) fail(ErrorKind::data, "'{}' is no sharding; write one such as 'flat(data=4) of (64,3,7,7)'", text);
  return *sharding;
}

Tensor part_of(const Tensor& whole, const Sharding& sharding, int64_t coordinate) {
  if (sharding.is_replicated()) return whole;
  check(sharding.flat.has_value(), "a tensor whose elements are split");
  check(whole.layout().is_plain() && whole.shape() == sharding.whole, "the whole tensor of a part");
  Tensor part(whole.dtype(), part_shape(sharding));
  const int64_t begin = std::min(coordinate * part.elements(), whole.elements());
  const int64_t end = std::min(begin + part.elements(), whole.elements());
  if (begin < end)
    std::memcpy(part.data(), whole.data_as<std::byte>() + byte_size(whole.dtype(), begin),
                static_cast<size_t>(byte_size(whole.dtype(), end - begin)));
  return part;
}

void put_part(Tensor& whole, const Tensor& part, const Sharding& sharding, int64_t coordinate) {
  check(sharding.flat.has_value() && whole.layout().is_plain() && whole.shape() == sharding.whole &&
            part.dtype() == whole.dtype() && part.shape() == part_shape(sharding),
        "a part of the whole tensor");
  const int64_t begin = std::min(coordinate * part.elements(), whole.elements());
  const int64_t end = std::min(begin + part.elements(), whole.elements());
  if (begin < end)
    std::memcpy(whole.data_as<std::byte>() + byte_size(whole.dtype(), begin), part.data(),
                static_cast<size_t>(byte_size(whole.dtype(), end - begin)));
}

}  // namespace weft
