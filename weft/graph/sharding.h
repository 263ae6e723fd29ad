// How the ranks of a run share a tensor. They stand in a mesh with named axes, such as data and tensor; along an axis a
// tensor is split by some of its dimensions, split evenly by its elements, or there are the terms of a sum. Where an
// axis is not named, all ranks along it hold the same (GSPMD: Xu et al. 2021, "GSPMD: General and scalable
// parallelization for ML computation graphs", section 3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

struct MeshAxis {
  std::string name;  // letters and '_'
  int64_t size = 1;  // ranks along it
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// The arrangement of the ranks: rank 0 is at the beginning of each axis, and the last axis is that of neighbours.
class Mesh {
 public:
  /// Error(usage) for a size below 1 or a name that stands twice.
  explicit Mesh(std::vector<MeshAxis> axes);

  const std::vector<MeshAxis>& axes() const { return axes_; }
  /// Ranks in all.
  int64_t size() const;
  /// Along that axis; 1 where the mesh has none of this name.
  int64_t size_of(std::string_view axis) const;
  /// Where the rank stands on the axis; 0 where there is none.
  int64_t coordinate(int64_t rank, std::string_view axis) const;
  /// The ranks that differ from this one on that axis alone, itself included, in the order of their coordinates.
  std::vector<int> group_of(int64_t rank, std::string_view axis) const;

 private:
  std::vector<MeshAxis> axes_;
};

/// "data=4,tensor=2"
std::string to_string(const Mesh& mesh);
/// Reverses to_string; Error(usage) with the text.
Mesh parse_mesh(std::string_view text);

/// How a tensor is shared: whole on every rank, unless something below says otherwise.
struct Sharding {
  Shape whole;                                      // of the tensor
  std::optional<MeshAxis> flat = {};                // splits the elements that `split` leaves, in row-major order
  std::vector<std::optional<MeshAxis>> split = {};  // one per dimension, or empty: that splits it
  int64_t blocks = 1;  // of the last dimension that is split: so many equal blocks, each of which is split by itself
  std::optional<MeshAxis> partial = {};  // over which each rank has a term of the sum

  bool is_replicated() const;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

/// Elements of each part of a tensor that is split evenly: as many on all ranks, at cache lines, so that the last part
/// may end with zeros.
int64_t flat_part_elements(int64_t elements, int64_t ranks);

/// What a rank holds: [elements of the part] where elements are split. Error(shape) where a dimension cannot be split
/// into equal parts.
Shape part_shape(const Sharding& sharding);

/// "flat(data=4) of (64,3,7,7)", "split(-,tensor=2) of (64,128)", "split(tensor=2,-) blocks(3) of (384,128)",
/// "flat(data=2) split(-,tensor=2) of (64,128)", "split(data=2,tensor=2,-) of (8,512,128)", "partial(data=2) of (8)",
/// "replicated of (3)"
std::string to_string(const Sharding& sharding);
/// Reverses to_string; Error(data) with the text.
Sharding parse_sharding(std::string_view text);

/// The part of a tensor with this number, which is the coordinate where one axis splits it; the tensor itself where it
/// is replicated. Both are plain.
Tensor part_of(const Tensor& whole, const Sharding& sharding, int64_t coordinate);
/// Writes that part into the whole tensor.
void put_part(Tensor& whole, const Tensor& part, const Sharding& sharding, int64_t coordinate);

/// The number of the part that a rank holds (tensor_parts.h); 0 where nothing splits the tensor.
int64_t coordinate_of(const Sharding& sharding, const Mesh& mesh, int64_t rank);
/// The ranks that hold the parts, in the order of these: of several with the same part the first.
std::vector<int> holders_of(const Sharding& sharding, const Mesh& mesh);

}  // namespace weft
