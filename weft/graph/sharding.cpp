#include "weft/graph/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <set>

#include "weft/base/error.h"
#include "weft/base/parse_number.h"
#include "weft/graph/filled_part.h"
#include "weft/graph/tensor_parts.h"

namespace weft {

namespace {

/// The last dimension that is split; nullopt: none is.
std::optional<int> last_split(const Sharding& sharding) {
  for (size_t at = sharding.split.size(); at-- > 0;)
    if (sharding.split[at]) return static_cast<int>(at);
  return std::nullopt;
}

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
    } else if (kind == "blocks") {
      const std::optional<int64_t> blocks = parse_number<int64_t>(std::string(inside));
      if (!blocks || *blocks < 1) return std::nullopt;
      sharding.blocks = *blocks;
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

bool Sharding::is_replicated() const { return !flat && !partial && !last_split(*this); }

int64_t flat_part_elements(int64_t elements, int64_t ranks) {
  constexpr int64_t kUnit = kAlignment / 4;  // elements of f32 in a cache line
  const int64_t units = (elements + kUnit - 1) / kUnit;
  return (units + ranks - 1) / ranks * kUnit;
}

namespace {

/// Of what the dimensions that are split leave to a rank.
Shape shape_of_split(const Sharding& sharding) {
  Shape shape = sharding.whole;
  for (size_t at = 0; at < sharding.split.size(); ++at) {
    if (!sharding.split[at]) continue;
    const auto dimension = static_cast<int>(at);
    const int64_t blocks = blocks_of(sharding, dimension);
    if (shape[dimension] % (sharding.split[at]->size * blocks) != 0)
      fail(ErrorKind::shape,
           "dimension {} of {} cannot be split into {} equal parts{}; choose another size of the axis '{}'", at,
           to_string(sharding.whole), sharding.split[at]->size,
           blocks > 1 ? fmt::format(" of {} blocks each", blocks) : "", sharding.split[at]->name);
    shape[dimension] /= sharding.split[at]->size;
  }
  return shape;
}

}  // namespace

Shape part_shape(const Sharding& sharding) {
  const Shape shape = shape_of_split(sharding);
  return sharding.flat ? Shape{flat_part_elements(shape.elements(), sharding.flat->size)} : shape;
}

Sharding flat_of_part(const Sharding& sharding) { return {.whole = shape_of_split(sharding), .flat = sharding.flat}; }

std::string to_string(const Sharding& sharding) {
  std::string text;
  const auto add = [&](const std::string& term) { text += (text.empty() ? "" : " ") + term; };
  if (sharding.flat) add(fmt::format("flat({})", to_string(*sharding.flat)));
  if (!sharding.split.empty()) {
    std::string axes;
    for (const auto& axis : sharding.split) axes += (axes.empty() ? "" : ",") + (axis ? to_string(*axis) : "-");
    add(fmt::format("split({})", axes));
    if (sharding.blocks > 1) add(fmt::format("blocks({})", sharding.blocks));
  }
  if (sharding.partial) add(fmt::format("partial({})", to_string(*sharding.partial)));
  return fmt::format("{} of {}", text.empty() ? "replicated" : text, to_string(sharding.whole));
}

Sharding parse_sharding(std::string_view text) {
  const std::optional<Sharding> sharding = read_sharding(text);
  if (!sharding) fail(ErrorKind::data, "'{}' is no sharding; write one such as 'flat(data=4) of (64,3,7,7)'", text);
  return *sharding;
}

int64_t blocks_of(const Sharding& sharding, int dimension) {
  return last_split(sharding) == dimension ? sharding.blocks : 1;
}

namespace {

/// The axes that split the tensor, in the order in which they number its parts: the last one's follow each other.
std::vector<const MeshAxis*> axes_of(const Sharding& sharding) {
  std::vector<const MeshAxis*> axes;
  if (sharding.flat) axes.push_back(&*sharding.flat);
  for (const std::optional<MeshAxis>& axis : sharding.split)
    if (axis) axes.push_back(&*axis);
  return axes;
}

}  // namespace

bool names_each_axis_once(const Sharding& sharding) {
  const std::vector<const MeshAxis*> axes = axes_of(sharding);
  return std::all_of(axes.begin(), axes.end(), [&](const MeshAxis* axis) {
    return std::count_if(axes.begin(), axes.end(), [&](const MeshAxis* other) { return other->name == axis->name; }) ==
           1;
  });
}

int64_t parts_of(const Sharding& sharding) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();  // ranks, which files may exceed
  int64_t parts = 1;
  for (const MeshAxis* const axis : axes_of(sharding)) parts = axis->size > kMost / parts ? kMost : parts * axis->size;
  return parts;
}

namespace {

/// Runs of bytes that lie behind each other in the whole tensor and in a part.
struct Runs {
  int64_t count = 0;
  size_t bytes = 0;    // of each
  int64_t first = 0;   // where the first begins in the whole
  int64_t stride = 0;  // from one to the next there
};

Runs runs_of(const Tensor& part, const Sharding& sharding, int64_t coordinate) {
  if (sharding.flat) {
    const int64_t begin = std::min(coordinate * part.elements(), sharding.whole.elements());
    const int64_t end = std::min(begin + part.elements(), sharding.whole.elements());
    return {begin < end ? 1 : 0, static_cast<size_t>(byte_size(part.dtype(), end - begin)),
            byte_size(part.dtype(), begin), 0};
  }
  int64_t outer = sharding.blocks;
  int dimension = 0;
  while (!sharding.split[static_cast<size_t>(dimension)]) outer *= sharding.whole[dimension++];
  const int64_t bytes = byte_size(part.dtype(), part.elements() / outer);
  return {outer, static_cast<size_t>(bytes), coordinate * bytes,
          bytes * sharding.split[static_cast<size_t>(dimension)]->size};
}

/// Several splits, one behind the other: that of the last dimension, and the others, of what it leaves to a rank.
struct NestedSplits {
  Sharding outer;
  int64_t outer_number = 0;
  Sharding inner;
  int64_t inner_number = 0;
};

std::optional<NestedSplits> nested_splits(const Sharding& sharding, int64_t coordinate) {
  const std::optional<int> last = last_split(sharding);
  if (!last || axes_of(sharding).size() == 1) return std::nullopt;
  const auto dimension = static_cast<size_t>(*last);
  const int64_t ranks = sharding.split[dimension]->size;
  Sharding outer{.whole = sharding.whole, .blocks = sharding.blocks};
  outer.split.resize(sharding.split.size());
  outer.split[dimension] = sharding.split[dimension];
  Sharding inner{.whole = shape_of_split(outer), .flat = sharding.flat, .split = sharding.split};
  inner.split[dimension].reset();
  return NestedSplits{std::move(outer), coordinate % ranks, std::move(inner), coordinate / ranks};
}

}  // namespace

Tensor part_of(const Tensor& whole, const Sharding& sharding, int64_t coordinate) {
  if (sharding.is_replicated()) return whole;
  if (const auto nested = nested_splits(sharding, coordinate))
    return part_of(part_of(whole, nested->outer, nested->outer_number), nested->inner, nested->inner_number);
  check(parts_of(sharding) > coordinate, "a tensor that is split");
  check(whole.layout().is_plain() && whole.shape() == sharding.whole, "the whole tensor of a part");
  Tensor part(whole.dtype(), part_shape(sharding));
  const Runs runs = runs_of(part, sharding, coordinate);
  for (int64_t run = 0; run < runs.count; ++run)
    std::memcpy(part.data_as<std::byte>() + run * static_cast<int64_t>(runs.bytes),
                whole.data_as<std::byte>() + runs.first + run * runs.stride, runs.bytes);
  return part;
}

Tensor filled_part(const Sharding& sharding, int64_t coordinate, const FillRange& fill) {
  if (const auto nested = nested_splits(sharding, coordinate))
    return part_of(filled_part(nested->outer, nested->outer_number, fill), nested->inner, nested->inner_number);
  check(parts_of(sharding) > coordinate, "a tensor that is split");
  Tensor part(DType::f32, part_shape(sharding));
  const Runs runs = runs_of(part, sharding, coordinate);
  constexpr auto kElementBytes = static_cast<int64_t>(sizeof(float));
  const int64_t count = static_cast<int64_t>(runs.bytes) / kElementBytes;
  for (int64_t run = 0; run < runs.count; ++run)
    fill(part.data_as<float>() + run * count, (runs.first + run * runs.stride) / kElementBytes, count);
  return part;
}

void put_part(Tensor& whole, const Tensor& part, const Sharding& sharding, int64_t coordinate) {
  if (const auto nested = nested_splits(sharding, coordinate)) {
    Tensor outer = part_of(whole, nested->outer, nested->outer_number);
    put_part(outer, part, nested->inner, nested->inner_number);
    return put_part(whole, outer, nested->outer, nested->outer_number);
  }
  check(parts_of(sharding) > coordinate && whole.layout().is_plain() && whole.shape() == sharding.whole &&
            part.dtype() == whole.dtype() && part.shape() == part_shape(sharding),
        "a part of the whole tensor");
  const Runs runs =
      sharding.is_replicated() ? Runs{1, static_cast<size_t>(part.bytes()), 0, 0} : runs_of(part, sharding, coordinate);
  for (int64_t run = 0; run < runs.count; ++run)
    std::memcpy(whole.data_as<std::byte>() + runs.first + run * runs.stride,
                part.data_as<std::byte>() + run * static_cast<int64_t>(runs.bytes), runs.bytes);
}

int64_t coordinate_of(const Sharding& sharding, const Mesh& mesh, int64_t rank) {
  int64_t number = 0;
  for (const MeshAxis* const axis : axes_of(sharding)) number = number * axis->size + mesh.coordinate(rank, axis->name);
  return number;
}

std::vector<int> holders_of(const Sharding& sharding, const Mesh& mesh) { return holders_of(sharding, mesh, 0); }

std::vector<int> holders_of(const Sharding& sharding, const Mesh& mesh, int64_t first) {
  std::vector<int> holders{static_cast<int>(first)};
  for (const MeshAxis* const axis : axes_of(sharding)) {
    std::vector<int> more;
    for (const int holder : holders)
      for (const int rank : mesh.group_of(holder, axis->name)) more.push_back(rank);
    holders = std::move(more);
  }
  return holders;
}

}  // namespace weft
