// transpose, for every dtype. Where the innermost axis stays innermost, as between [B,T,H,D] and [B,H,T,D], it is a
// copy of contiguous runs; else the axis that is contiguous in the operand and the one that is contiguous in the result
// span planes, which are transposed tile by tile.
#include <utility>

#include "weft/base/parallel.h"
#include "weft/cpu/native/movement/copies.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

/// to[row * to_stride + column] = from[column * from_stride + row]; strides in elements.
using TransposePlane = void (*)(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride,
                                int64_t rows, int64_t columns);

struct Loops {
  TransposePlane planes[4];  // by the binary logarithm of the element size
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/movement/transpose_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kStripRows = 64;  // result rows per job: whole cache lines of the operand for every dtype
constexpr int64_t kGrainBytes = 65536;
// Below which to pick elements one by one is as good (relayout.cpp).
constexpr int64_t kShortestRunBytes = 16, kShortestSide = 8;

class Transpose : public Kernel {
 public:
  /// `dimensions` as collapsed: the last one is contiguous in the result, `contiguous` in the operand.
  Transpose(std::string name, std::vector<CopyDimension> dimensions, size_t contiguous, int64_t size, int threads,
            Isa isa)
      : name_(std::move(name)),
        rows_(dimensions[contiguous]),
        columns_(dimensions.back()),
        size_(size),
        threads_(threads) {
    dimensions.pop_back();
    dimensions.erase(dimensions.begin() + static_cast<std::ptrdiff_t>(contiguous));
    outer_ = std::move(dimensions);
    strips_ = (rows_.size + kStripRows - 1) / kStripRows;
    jobs_ = columns_.size == 0 ? 0 : strips_;
    for (const CopyDimension& dimension : outer_) jobs_ *= dimension.size;
    int log2 = 0;
    while ((int64_t{1} << log2) < size) ++log2;
    transpose_plane_ = loops_for(isa).planes[log2];
  }

  std::string name() const override { return name_; }

  void run(const KernelArguments& arguments) override {
    const int64_t job_bytes = std::min(rows_.size, kStripRows) * columns_.size * size_;
    parallel_for(threads_, jobs_, kGrainBytes / std::max<int64_t>(job_bytes, 1), [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) run_strip(arguments, job);
    });
  }

 private:
  void run_strip(const KernelArguments& arguments, int64_t job) const {
    const int64_t row = job % strips_ * kStripRows;
    int64_t plane = job / strips_, from = row * rows_.from, to = row * rows_.to;
    for (size_t axis = outer_.size(); axis-- > 0; plane /= outer_[axis].size) {
      const int64_t index = plane % outer_[axis].size;
      from += index * outer_[axis].from;
      to += index * outer_[axis].to;
    }
    transpose_plane_(static_cast<std::byte*>(arguments.outputs[0]) + to * size_, rows_.to,
                     static_cast<const std::byte*>(arguments.inputs[0]) + from * size_, columns_.from,
                     std::min(kStripRows, rows_.size - row), columns_.size);
  }

  const std::string name_;
  const CopyDimension rows_, columns_;  // of the result's planes; rows_.from and columns_.to are 1
  std::vector<CopyDimension> outer_;
  int64_t strips_ = 0, jobs_ = 0;
  const int64_t size_;  // of an element, in bytes
  const int threads_;
  TransposePlane transpose_plane_ = nullptr;
};

std::unique_ptr<Kernel> make_planes(const NodeSignature& node, const KernelOptions& options,
                                    const std::vector<CopyDimension>& dimensions, size_t contiguous, Isa isa) {
  const int64_t size = unpacked_size(node.outputs[0].dtype);
  return std::make_unique<Transpose>("native:" + node.op->name, dimensions, contiguous, size, options.threads, isa);
}

std::unique_ptr<Kernel> make_transpose(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                       std::string& why_not) {
  if (!all_plain(node, why_not)) return nullptr;
  const std::vector<int64_t> strides = row_major_strides(node.inputs[0].shape);
  std::vector<int64_t> permuted;
  for (const int64_t axis : node.attributes.integers("permutation"))
    permuted.push_back(strides[static_cast<size_t>(axis)]);
  const Shape& out = node.outputs[0].shape;
  const int64_t size = unpacked_size(node.outputs[0].dtype);
  const auto dimensions = collapse(copy_dimensions(out, permuted, row_major_strides(out)));
  for (size_t axis = 0; axis + 1 < dimensions.size(); ++axis)
    if (dimensions[axis].from == 1) return make_planes(node, options, dimensions, axis, isa);
  return make_copies(node, options, {{StridedCopy(dimensions, size, 0, 0, isa), 0}});
}

}  // namespace

std::unique_ptr<Kernel> make_permutation(const NodeSignature& node, const KernelOptions& options,
                                         const std::vector<CopyDimension>& dimensions, Isa isa) {
  const int64_t size = unpacked_size(node.outputs[0].dtype);
  const bool has_runs = dimensions.empty() || dimensions.back().from == 1;
  if (has_runs && (dimensions.size() < 2 || dimensions.back().size * size >= kShortestRunBytes))
    return make_copies(node, options, {{StridedCopy(dimensions, size, 0, 0, isa), 0}});
  for (size_t axis = 0; axis + 1 < dimensions.size(); ++axis)
    if (dimensions[axis].from == 1 && dimensions[axis].size >= kShortestSide && dimensions.back().size >= kShortestSide)
      return make_planes(node, options, dimensions, axis, isa);
  return nullptr;
}

void add_transpose(KernelTable& table, Isa isa) {
  table.add("transpose",
            {"native", [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
               return make_transpose(node, options, isa, why_not);
             }});
}

}  // namespace weft::native
