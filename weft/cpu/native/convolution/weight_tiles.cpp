// cast and reorder of convolution weights between the layouts that oneDNN's kernels want: tiles of 16 output by 16
// input channels, which differ in what lies innermost. A parameter in f32 becomes the bf16 weight of the forward
// product, that becomes the weight of the data's gradient, each a tile at a time in registers. Tiles that the channels
// do not fill hold zeros, which stay zeros.
#include <array>
#include <optional>

#include "weft/base/parallel.h"
#include "weft/cpu/native/movement/relayout.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

using CopyTile = void (*)(void* to, const void* from);

struct Loops {  // null where the instruction set has no vectors of 16 floats
  CopyTile round_to_pairs, transpose_pairs;
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/convolution/weight_tiles_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kSide = 16, kTile = kSide * kSide;  // elements

/// How a tile lies in memory.
struct TileFormat {
  int lanes;      // the axis whose 16 indices are innermost, but for pairs
  bool is_pairs;  // two indices of the other axis stand beside each other: [8][16][2], not [16][16]
};

std::optional<TileFormat> tile_format(const Layout& layout) {
  using Blocks = std::vector<Layout::Block>;
  for (const int lanes : {0, 1}) {
    const int rows = 1 - lanes;
    if (layout.blocks == Blocks{{rows, 16}, {lanes, 16}}) return TileFormat{lanes, false};
    if (layout.blocks == Blocks{{rows, 8}, {lanes, 16}, {rows, 2}}) return TileFormat{lanes, true};
  }
  return std::nullopt;
}

CopyTile tile_loop(const TensorType& from, const TensorType& to, const Loops& loops) {
  if (from.shape.rank() != 4) return nullptr;
  const auto source = tile_format(from.layout), target = tile_format(to.layout);
  if (!source || !target) return nullptr;
  const bool same_lanes = source->lanes == target->lanes;
  if (from.dtype == DType::f32 && to.dtype == DType::bf16)
    return !source->is_pairs && target->is_pairs && same_lanes ? loops.round_to_pairs : nullptr;
  if (from.dtype == DType::bf16 && to.dtype == DType::bf16)
    return source->is_pairs && target->is_pairs && !same_lanes ? loops.transpose_pairs : nullptr;
  return nullptr;
}

/// The walk over whole tiles in the order of the result's.
std::optional<std::vector<CopyDimension>> walk_over_tiles(const TensorType& from, const TensorType& to) {
  std::vector<int64_t> sizes(from.shape.begin(), from.shape.end());
  for (const size_t axis : {size_t{0}, size_t{1}}) sizes[axis] = (sizes[axis] + kSide - 1) / kSide;
  return relayout_dimensions(Shape(sizes), {from.layout.order, {}}, {to.layout.order, {}});
}

class WeightTiles : public Kernel {
 public:
  WeightTiles(const NodeSignature& node, std::vector<CopyDimension> walk, CopyTile copy, int threads)
      : name_("native:" + node.op->name + "_tiles"),
        walk_(std::move(walk)),
        copy_(copy),
        from_bytes_(byte_size(node.inputs[0].dtype, kTile)),
        to_bytes_(byte_size(node.outputs[0].dtype, kTile)),
        threads_(threads) {
    for (const CopyDimension& dimension : walk_) tiles_ *= dimension.size;
  }

  std::string name() const override { return name_; }

  void run(const KernelArguments& arguments) override {
    constexpr int64_t kGrain = 64;  // tiles that are worth a thread
    const auto* const from = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* const to = static_cast<std::byte*>(arguments.outputs[0]);
    parallel_for(threads_, tiles_, kGrain, [&](int64_t begin, int64_t end) { copy_range(to, from, begin, end); });
  }

 private:
  void copy_range(std::byte* to, const std::byte* from, int64_t begin, int64_t end) const {
    std::array<int64_t, 4> index{};
    int64_t place = 0, rest = begin;
    for (size_t axis = walk_.size(); axis-- > 0; rest /= walk_[axis].size) {
      index[axis] = rest % walk_[axis].size;
      place += index[axis] * walk_[axis].from;
    }
    for (int64_t tile = begin; tile < end; ++tile) {
      copy_(to + tile * to_bytes_, from + place * from_bytes_);
      for (size_t axis = walk_.size(); axis-- > 0;) {
        place += walk_[axis].from;
        if (++index[axis] < walk_[axis].size) break;
        place -= walk_[axis].size * walk_[axis].from;
        index[axis] = 0;
      }
    }
  }

  const std::string name_;
  const std::vector<CopyDimension> walk_;  // strides in tiles
  const CopyTile copy_;
  const int64_t from_bytes_, to_bytes_;  // of a tile
  const int threads_;
  int64_t tiles_ = 1;
};

std::unique_ptr<Kernel> make_weight_tiles(const NodeSignature& node, int threads, Isa isa, std::string& why_not) {
  const TensorType &from = node.inputs[0], &to = node.outputs[0];
  const CopyTile copy = tile_loop(from, to, loops_for(isa));
  if (copy == nullptr) return declined(why_not, "no layouts of 16x16 tiles, or no vectors of 16 floats");
  auto walk = walk_over_tiles(from, to);
  if (!walk) return declined(why_not, "an operand is empty");
  return std::make_unique<WeightTiles>(node, std::move(*walk), copy, threads);
}

}  // namespace

void add_weight_tiles(KernelTable& table, Isa isa) {
  for (const char* op : {"cast", "reorder"})
    table.add_first(op, {"native",
                         [isa](const NodeSignature& node, const KernelOptions& options,
                               std::string& why_not) -> std::unique_ptr<Kernel> {
                           return make_weight_tiles(node, options.threads, isa, why_not);
                         }});
}

}  // namespace weft::native
