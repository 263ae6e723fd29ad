// reorder, for types and processors that oneDNN does not serve. Where what is contiguous in one layout is contiguous in
// the other, or makes up planes with it, these are copies and transpositions; else runs of the result are picked
// element by element from places that are the same for each run but for where it begins.
#include "weft/cpu/native/movement/relayout.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/parallel.h"
#include "weft/cpu/native/movement/copies.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

constexpr int64_t kLongestRun = 1024;  // elements: with their places they fit the first-level cache

using Pick = void (*)(const void* from, const int32_t* places, void* to, int64_t count);
struct Loops {
  Pick bytes, halves, words;  // elements of 1, 2 and 4 bytes
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/movement/relayout_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

/// The digits of an axis' index, innermost first, with what each adds to the position in memory.
struct Digit {
  int64_t size, stride;
};
std::vector<std::vector<Digit>> digits_of(const Shape& shape, const Layout& layout) {
  std::vector<std::vector<Digit>> digits(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (auto block = layout.blocks.rbegin(); block != layout.blocks.rend(); ++block) {
    digits[static_cast<size_t>(block->axis)].push_back({block->size, stride});
    stride *= block->size;
  }
  for (int at = shape.rank(); at-- > 0;) {
    const int axis = layout.order.empty() ? at : layout.order[static_cast<size_t>(at)];
    const int64_t size = shape[axis] / block_of(layout, axis);
    digits[static_cast<size_t>(axis)].push_back({size, stride});
    stride *= size;
  }
  return digits;
}

/// Appends the common digits of an axis; false where there are none.
bool add_common_digits(const std::vector<Digit>& from, const std::vector<Digit>& to,
                       std::vector<CopyDimension>& dimensions) {
  size_t i = 0, j = 0;
  Digit left = from[0], right = to[0];
  while (true) {
    const int64_t size = std::min(left.size, right.size);
    if (left.size % size != 0 || right.size % size != 0) return false;
    dimensions.push_back({size, left.stride, right.stride});
    left = {left.size / size, left.stride * size};
    right = {right.size / size, right.stride * size};
    if (left.size == 1 && ++i < from.size()) left = from[i];
    if (right.size == 1 && ++j < to.size()) right = to[j];
    if (i >= from.size() && j >= to.size()) return true;
  }
}

class Relayout : public Kernel {
 public:
  Relayout(const NodeSignature& node, const std::vector<CopyDimension>& dimensions, size_t inner, Pick pick,
           int threads)
      : name_("native:" + node.op->name),
        outer_(dimensions.begin(), dimensions.begin() + static_cast<std::ptrdiff_t>(inner)),
        pick_(pick),
        size_(unpacked_size(node.outputs[0].dtype)),
        threads_(threads) {
    places_.push_back(0);
    for (size_t at = inner; at < dimensions.size(); ++at) {
      std::vector<int32_t> longer;
      for (const int32_t place : places_)
        for (int64_t index = 0; index < dimensions[at].size; ++index)
          longer.push_back(place + static_cast<int32_t>(index * dimensions[at].from));
      places_ = std::move(longer);
    }
    for (const CopyDimension& dimension : outer_) runs_ *= dimension.size;
  }

  std::string name() const override { return name_; }

  void run(const KernelArguments& arguments) override {
    constexpr int64_t kGrain = 16384;  // elements that are worth a thread
    const auto length = static_cast<int64_t>(places_.size());
    const auto* from = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* to = static_cast<std::byte*>(arguments.outputs[0]);
    parallel_for(threads_, runs_, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run)
        pick_(from + offset_of(run) * size_, places_.data(), to + run * length * size_, length);
    });
  }

 private:
  /// Where a run begins in the operand; in the result they follow each other.
  int64_t offset_of(int64_t run) const {
    int64_t offset = 0;
    for (size_t at = outer_.size(); at-- > 0; run /= outer_[at].size) offset += run % outer_[at].size * outer_[at].from;
    return offset;
  }

  const std::string name_;
  const std::vector<CopyDimension> outer_;
  std::vector<int32_t> places_;  // of a run's elements, from where it begins in the operand
  const Pick pick_;
  const int64_t size_;  // of an element, in bytes
  const int threads_;
  int64_t runs_ = 1;
};

/// Cuts the last dimension where it is longer than a run may be; false where it has no divisor that would do.
bool fit_last_dimension(std::vector<CopyDimension>& dimensions) {
  const CopyDimension last = dimensions.back();
  int64_t run = std::min(last.size, kLongestRun);
  while (last.size % run != 0) --run;
  if (run < last.size && run < 16) return false;
  if (run == last.size) return true;
  dimensions.back() = {last.size / run, last.from * run, last.to * run};
  dimensions.push_back({run, last.from, last.to});
  return true;
}

std::unique_ptr<Kernel> make_picking(const NodeSignature& node, const KernelOptions& options,
                                     std::vector<CopyDimension> dimensions, Pick pick, std::string& why_not) {
  if (dimensions.empty()) dimensions.push_back({1, 1, 1});
  if (!fit_last_dimension(dimensions)) return declined(why_not, "no run of the result has a useful length");
  size_t inner = dimensions.size();
  int64_t length = 1, reach = 0;
  while (inner > 0 && length * dimensions[inner - 1].size <= kLongestRun) {
    length *= dimensions[--inner].size;
    reach += (dimensions[inner].size - 1) * dimensions[inner].from;
  }
  if (reach > std::numeric_limits<int32_t>::max()) return declined(why_not, "the elements of a run lie too far apart");
  return std::make_unique<Relayout>(node, dimensions, inner, pick, options.threads);
}

std::unique_ptr<Kernel> make_reorder(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                     std::string& why_not) {
  const TensorType &from = node.inputs[0], &to = node.outputs[0];
  const auto dimensions = relayout_dimensions(from.shape, from.layout, to.layout);
  if (!dimensions) return declined(why_not, "blocks that are not full, or that cut across each other");
  const int64_t size = unpacked_size(from.dtype);
  if (auto kernel = make_permutation(node, options, *dimensions, isa)) return kernel;
  if (size > 4) return declined(why_not, fmt::format("elements of {} bytes", size));
  const Loops& loops = loops_for(isa);
  const Pick pick = size == 1 ? loops.bytes : size == 2 ? loops.halves : loops.words;
  return make_picking(node, options, *dimensions, pick, why_not);
}

}  // namespace

std::optional<std::vector<CopyDimension>> relayout_dimensions(const Shape& shape, const Layout& from,
                                                              const Layout& to) {
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] == 0 || shape[axis] % block_of(from, axis) != 0 || shape[axis] % block_of(to, axis) != 0)
      return std::nullopt;
  const auto sources = digits_of(shape, from), targets = digits_of(shape, to);
  std::vector<CopyDimension> dimensions;
  for (size_t axis = 0; axis < sources.size(); ++axis)
    if (!add_common_digits(sources[axis], targets[axis], dimensions)) return std::nullopt;
  std::erase_if(dimensions, [](const CopyDimension& dimension) { return dimension.size == 1; });
  std::sort(dimensions.begin(), dimensions.end(),
            [](const CopyDimension& a, const CopyDimension& b) { return a.to > b.to; });
  return collapse(dimensions);
}

void add_reorder(KernelTable& table, Isa isa) {
  table.add("reorder", {"native", [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
                          return make_reorder(node, options, isa, why_not);
                        }});
}

}  // namespace weft::native
