// reduce_sum, reduce_mean, reduce_prod, reduce_max and reduce_min over any axes of a plain tensor. Adjacent axes of one
// fate are merged, which leaves either rows that are summed whole (the last axis goes) or columns that are summed side
// by side (it stays).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

enum class Reduction { sum, max, min, product };

constexpr float start_of(Reduction reduction) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (reduction == Reduction::product) return 1.0f;
  return reduction == Reduction::max ? -infinity : reduction == Reduction::min ? infinity : 0.0f;
}

constexpr int64_t kTile = 1024;  // columns summed together: their totals stay in the first-level cache

template <typename T>
struct Loops {
  void (*span[4])(const T* x, int64_t count, double* total);  // [Reduction]
  void (*columns[4])(const T* x, int64_t rows, int64_t stride, int64_t width, double* totals);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/reduce/reduce_loops.h"
#define WEFT_LOOPS_PER_TYPE
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kRows = 64;      // rows added in single precision before they go to double
constexpr int64_t kGrain = 16384;  // elements that are worth a thread

/// A row-major walk over some axes of a larger tensor.
struct Walk {
  std::vector<int64_t> dims, strides;
  int64_t count() const {
    int64_t product = 1;
    for (const int64_t dim : dims) product *= dim;
    return product;
  }
  int64_t offset(int64_t position) const {
    int64_t result = 0;
    for (size_t axis = dims.size(); axis-- > 0;) {
      result += position % dims[axis] * strides[axis];
      position /= dims[axis];
    }
    return result;
  }
  int64_t last_dim() const { return dims.empty() ? 1 : dims.back(); }
  int64_t last_stride() const { return dims.empty() ? 0 : strides.back(); }
};

/// The tensor as kept x reduced outer axes around one inner axis.
struct Geometry {
  Walk kept, reduced;  // without the inner axis
  int64_t inner = 1;
  bool inner_is_reduced = true;
};

Geometry merge_axes(const Shape& shape, const std::vector<int64_t>& axes) {
  struct Axis {
    int64_t dim, stride;
    bool reduced;
  };
  std::vector<Axis> merged;
  const std::vector<int64_t> strides = row_major_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    const bool reduced = axes.empty() || std::count(axes.begin(), axes.end(), axis) > 0 ||
                         std::count(axes.begin(), axes.end(), axis - shape.rank()) > 0;
    const int64_t stride = strides[static_cast<size_t>(axis)];
    if (!merged.empty() && merged.back().reduced == reduced)
      merged.back() = {merged.back().dim * shape[axis], stride, reduced};
    else
      merged.push_back({shape[axis], stride, reduced});
  }
  Geometry geometry;
  if (merged.empty()) return geometry;
  geometry.inner = merged.back().dim;
  geometry.inner_is_reduced = merged.back().reduced;
  merged.pop_back();
  for (const Axis& axis : merged) {
    Walk& walk = axis.reduced ? geometry.reduced : geometry.kept;
    walk.dims.push_back(axis.dim);
    walk.strides.push_back(axis.stride);
  }
  return geometry;
}

/// From images of T to T or f32.
template <typename T>
class Reduce : public Kernel {
 public:
  Reduce(const NodeSignature& node, Reduction reduction, bool mean, int threads, Isa isa)
      : geometry_(merge_axes(node.inputs[0].shape, node.attributes.integers("axes"))),
        reduction_(reduction),
        name_("native:" + node.op->name),
        loops_(loops_for<T>(isa)),
        widens_(node.outputs[0].dtype == DType::f32),
        threads_(threads) {
    const int64_t elements = node.inputs[0].elements();
    outputs_ = node.outputs[0].elements();
    factor_ = mean ? static_cast<double>(outputs_) / static_cast<double>(elements) : 1.0;
    kept_ = geometry_.kept.count();
    reduced_ = geometry_.reduced.count();
    tiles_ = geometry_.inner_is_reduced ? 1 : (geometry_.inner + kTile - 1) / kTile;
    parts_ = static_cast<int>(std::clamp<int64_t>(elements / kGrain, 1, threads));
    // Too few results to share out: each is cut into slices along the longest reduced direction.
    slices_ = kept_ * tiles_ >= parts_ ? 1 : parts_;
  }

  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override { return slices_ * kept_ * tiles_ * tile_width() * 8; }

  void run(const KernelArguments& arguments) override {
    const T* x = arguments.input<T>(0);
    auto* totals = static_cast<double*>(arguments.workspace);
    void* out = arguments.outputs[0];
    const int64_t tasks = kept_ * tiles_;
    const auto start = static_cast<double>(start_of(reduction_));
    parallel_run(threads_, parts_, [&](int thread, int count) {
      const auto [begin, end] = split_range(tasks * slices_, thread, count);
      for (int64_t i = begin; i < end; ++i) {
        double* total = totals + i * tile_width();
        std::fill(total, total + tile_width(), start);
        reduce_task(x, i % tasks, static_cast<int>(i / tasks), total);
        if (slices_ == 1) write(i, total, out);
      }
    });
    if (slices_ == 1) return;
    for (int64_t task = 0; task < tasks; ++task) {
      double* total = totals + task * tile_width();
      for (int64_t slice = 1; slice < slices_; ++slice)
        for (int64_t lane = 0; lane < tile_width(); ++lane) {
          const double value = totals[(slice * tasks + task) * tile_width() + lane];
          total[lane] = join(total[lane], value);
        }
      write(task, total, out);
    }
  }

 private:
  double join(double total, double value) const {
    if (reduction_ == Reduction::product) return total * value;
    if (reduction_ == Reduction::sum) return total + value;
    const bool taken = reduction_ == Reduction::max ? value > total : value < total;
    return taken || std::isnan(value) ? value : total;
  }
  int64_t tile_width() const { return geometry_.inner_is_reduced ? 1 : std::min(kTile, geometry_.inner); }
  int64_t columns_of(int64_t tile) const { return std::min(kTile, geometry_.inner - tile * kTile); }

  void reduce_task(const T* x, int64_t task, int slice, double* total) const {
    const auto which = static_cast<size_t>(reduction_);
    const T* from = x + geometry_.kept.offset(task / tiles_);
    const bool cuts_inner = geometry_.inner_is_reduced && reduced_ == 1;
    const auto [first, last] = split_range(cuts_inner ? geometry_.inner : reduced_, slice, slices_);
    if (cuts_inner) {
      loops_.span[which](from + first, last - first, total);
      return;
    }
    const int64_t tile = task % tiles_;
    for (int64_t row = first; row < last;) {
      const T* at = from + geometry_.reduced.offset(row);
      if (geometry_.inner_is_reduced) {
        loops_.span[which](at, geometry_.inner, total);
        ++row;
        continue;
      }
      const int64_t dim = geometry_.reduced.last_dim();
      const int64_t rows = std::min({kRows, dim - row % dim, last - row});
      loops_.columns[which](at + tile * kTile, rows, geometry_.reduced.last_stride(), columns_of(tile), total);
      row += rows;
    }
  }

  void write(int64_t task, const double* total, void* out) const {
    if (geometry_.inner_is_reduced) return write_at(out, task, *total);
    const int64_t tile = task % tiles_, first = task / tiles_ * geometry_.inner + tile * kTile;
    for (int64_t column = 0; column < columns_of(tile); ++column) write_at(out, first + column, total[column]);
  }
  void write_at(void* out, int64_t place, double total) const {
    const auto value = static_cast<float>(total * factor_);
    if (widens_)
      static_cast<float*>(out)[place] = value;
    else
      baseline::store<float>(static_cast<T*>(out) + place, value);
  }

  const Geometry geometry_;
  const Reduction reduction_;
  const std::string name_;
  const Loops<T>& loops_;
  const bool widens_;  // the result is f32, whatever T is
  const int threads_;
  int64_t outputs_ = 0, kept_ = 0, reduced_ = 0, tiles_ = 0;
  double factor_ = 1;
  int parts_ = 1, slices_ = 1;
};

}  // namespace

void add_reduce(KernelTable& table, Isa isa) {
  const auto add = [&](const char* op, Reduction reduction, bool mean) {
    table.add(op, {"native",
                   [=](const NodeSignature& node, const KernelOptions& options,
                       std::string& why_not) -> std::unique_ptr<Kernel> {
                     const bool widens = node.outputs[0].dtype == DType::f32;
                     if (!plain_images(node, 1, widens ? 0 : 1, why_not)) return nullptr;
                     if (node.inputs[0].elements() == 0) return declined(why_not, "the input is empty");
                     return with_stored_type(node.inputs[0].dtype, [&](auto number) -> std::unique_ptr<Kernel> {
                       return std::make_unique<Reduce<decltype(number)>>(node, reduction, mean, options.threads, isa);
                     });
                   }});
  };
  add("reduce_sum", Reduction::sum, false);
  add("reduce_mean", Reduction::sum, true);
  add("reduce_prod", Reduction::product, false);
  add("reduce_max", Reduction::max, false);
  add("reduce_min", Reduction::min, false);
}

}  // namespace weft::native
