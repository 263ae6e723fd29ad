// constant, broadcast_to, slice, strided_slice and its gradient, concat and pad, for every dtype. slice and concat also
// of images in other layouts, where they cut no block.
#include "weft/cpu/native/movement/copies.h"

#include <algorithm>
#include <array>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"
#include "weft/tensor/element.h"

namespace weft::native {

namespace {

constexpr int64_t kGrainBytes = 65536;  // below which a second thread costs more than it brings
constexpr int64_t kSliverBytes = 256;   // runs so short are better filled in passing, with what lies between them

class Copies : public Kernel {
 public:
  /// `fills` come before `copies`, which may write over them; both lists read `element` where a part has no input.
  Copies(const NodeSignature& node, int threads, CopyParts fills, CopyParts copies, std::array<std::byte, 8> element)
      : name_("native:" + node.op->name),
        fills_(std::move(fills)),
        copies_(std::move(copies)),
        element_(element),
        grain_(kGrainBytes / unpacked_size(node.outputs[0].dtype)),
        threads_(threads) {}

  std::string name() const override { return name_; }

  void run(const KernelArguments& arguments) override {
    run_parts(fills_, arguments);
    run_parts(copies_, arguments);
  }

 private:
  void run_parts(const CopyParts& parts, const KernelArguments& arguments) const {
    int64_t elements = 0;
    for (const CopyPart& part : parts) elements += part.copy.elements();
    if (elements == 0) return;
    parallel_for(threads_, elements, grain_, [&](int64_t begin, int64_t end) {
      int64_t first = 0;  // of the part, counted through all parts
      for (const CopyPart& part : parts) {
        const int64_t from = std::max<int64_t>(begin - first, 0), to = std::min(end - first, part.copy.elements());
        if (from < to) part.copy.run(source(arguments, part), static_cast<std::byte*>(arguments.outputs[0]), from, to);
        first += part.copy.elements();
      }
    });
  }

  const std::byte* source(const KernelArguments& arguments, const CopyPart& part) const {
    if (part.input < 0) return element_.data();
    return static_cast<const std::byte*>(arguments.inputs[static_cast<size_t>(part.input)]);
  }

  const std::string name_;
  const CopyParts fills_, copies_;
  const std::array<std::byte, 8> element_;
  const int64_t grain_;
  const int threads_;
};

int64_t offset_of(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) offset += index[axis] * strides[axis];
  return offset;
}

std::array<std::byte, 8> element_of(DType dtype, double value) {
  std::array<std::byte, 8> element{};
  store_element(dtype, element.data(), 0, value);
  return element;
}

/// Fills the box of `shape` that begins at `start` in a row-major tensor with the given strides.
CopyPart fill_part(const Shape& shape, const std::vector<int64_t>& start, const std::vector<int64_t>& strides,
                   int64_t size, Isa isa) {
  const std::vector<int64_t> zeros(strides.size(), 0);
  return {StridedCopy(copy_dimensions(shape, zeros, strides), size, 0, offset_of(start, strides), isa), -1};
}

std::unique_ptr<Kernel> make_broadcast(const NodeSignature& node, const KernelOptions& options, Isa isa) {
  const Shape &in = node.inputs[0].shape, &out = node.outputs[0].shape;
  const std::vector<int64_t> own = row_major_strides(in);
  std::vector<int64_t> from(static_cast<size_t>(out.rank()), 0);
  const int missing = out.rank() - in.rank();
  for (int axis = 0; axis < in.rank(); ++axis)
    if (in[axis] != 1) from[static_cast<size_t>(axis + missing)] = own[static_cast<size_t>(axis)];
  const auto dimensions = copy_dimensions(out, from, row_major_strides(out));
  return make_copies(node, options, {{StridedCopy(dimensions, unpacked_size(node.outputs[0].dtype), 0, 0, isa), 0}});
}

int64_t elements_of_block(const Layout& layout) {
  int64_t elements = 1;
  for (const Layout::Block& block : layout.blocks) elements *= block.size;
  return elements;
}

/// What a step along each axis adds to the position in memory, in elements: a step by a whole block where the axis has
/// blocks.
std::vector<int64_t> block_strides(const Shape& shape, const Layout& layout) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  int64_t stride = elements_of_block(layout);
  for (int at = shape.rank(); at-- > 0;) {
    const int axis = layout.order.empty() ? at : layout.order[static_cast<size_t>(at)];
    strides[static_cast<size_t>(axis)] = stride;
    stride *= blocks_along(shape, layout, axis);
  }
  return strides;
}

/// A walk over all blocks of a box, in the order of the layout, that two tensors have in common: `from` and `to` are
/// their block_strides().
std::vector<CopyDimension> block_walk(const Shape& box, const Layout& layout, const std::vector<int64_t>& from,
                                      const std::vector<int64_t>& to) {
  std::vector<CopyDimension> dimensions;
  for (int at = 0; at < box.rank(); ++at) {
    const int axis = layout.order.empty() ? at : layout.order[static_cast<size_t>(at)];
    const auto index = static_cast<size_t>(axis);
    dimensions.push_back({blocks_along(box, layout, axis), from[index], to[index]});
  }
  dimensions.push_back({elements_of_block(layout), 1, 1});
  return dimensions;
}

/// Whether the slice begins and ends with whole blocks of its operand.
bool slices_whole_blocks(const NodeSignature& node, const Layout& layout) {
  const Shape& whole = node.inputs[0].shape;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    const int64_t block = block_of(layout, axis), start = node.attributes.integers("starts")[static_cast<size_t>(axis)],
                  end = node.attributes.integers("ends")[static_cast<size_t>(axis)];
    if (start % block != 0 || (end % block != 0 && end != whole[axis])) return false;
  }
  return true;
}

std::unique_ptr<Kernel> make_slice(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                   std::string& why_not) {
  const TensorType &in = node.inputs[0], &out = node.outputs[0];
  if (in.layout != out.layout) return declined(why_not, to_string(in) + " and another layout of the result");
  if (!slices_whole_blocks(node, in.layout)) return declined(why_not, "it cuts a block of " + to_string(in));
  const std::vector<int64_t> strides = block_strides(in.shape, in.layout);
  int64_t base = 0;
  for (int axis = 0; axis < in.shape.rank(); ++axis) {
    const auto index = static_cast<size_t>(axis);
    base += node.attributes.integers("starts")[index] / block_of(in.layout, axis) * strides[index];
  }
  const auto dimensions = block_walk(out.shape, in.layout, strides, block_strides(out.shape, out.layout));
  return make_copies(node, options, {{StridedCopy(dimensions, unpacked_size(out.dtype), base, 0, isa), 0}});
}

/// The operand's own, where the slice cuts no block of it.
std::optional<LayoutChoice> slice_layouts(const NodeSignature& node, const KernelOptions&) {
  const Layout& layout = node.inputs[0].layout;
  if (layout.is_plain() || !slices_whole_blocks(node, layout)) return std::nullopt;
  return LayoutChoice{{layout}, {layout}};
}

/// The elements that a strided slice takes from a tensor of `whole`: strides, and where the walk begins.
std::pair<std::vector<int64_t>, int64_t> walk_of(const Attributes& attributes, const Shape& whole) {
  std::vector<int64_t> strides = row_major_strides(whole);
  const int64_t base = offset_of(attributes.integers("starts"), strides);
  for (size_t axis = 0; axis < strides.size(); ++axis) strides[axis] *= attributes.integers("steps")[axis];
  return {std::move(strides), base};
}

std::unique_ptr<Kernel> make_strided_slice(const NodeSignature& node, const KernelOptions& options, Isa isa) {
  const Shape& out = node.outputs[0].shape;
  const auto [strides, base] = walk_of(node.attributes, node.inputs[0].shape);
  const auto dimensions = copy_dimensions(out, strides, row_major_strides(out));
  return make_copies(node, options, {{StridedCopy(dimensions, unpacked_size(node.outputs[0].dtype), base, 0, isa), 0}});
}

std::unique_ptr<Kernel> make_strided_slice_backward(const NodeSignature& node, const KernelOptions& options, Isa isa) {
  const Shape &in = node.inputs[0].shape, &out = node.outputs[0].shape;
  const int64_t size = unpacked_size(node.outputs[0].dtype);
  const std::vector<int64_t> own = row_major_strides(out);
  const auto [strides, base] = walk_of(node.attributes, out);
  CopyParts fills{fill_part(out, std::vector<int64_t>(own.size(), 0), own, size, isa)};
  StridedCopy copy(copy_dimensions(in, row_major_strides(in), strides), size, 0, base, isa);
  return std::make_unique<Copies>(node, options.threads, std::move(fills), CopyParts{{std::move(copy), 0}},
                                  element_of(node.outputs[0].dtype, 0));
}

/// Whether each operand of a concat ends with a whole block; the last may end where the result does.
bool joins_whole_blocks(const NodeSignature& node, const Layout& layout) {
  const auto axis = static_cast<int>(node.attributes.integer("axis"));
  return std::all_of(node.inputs.begin(), std::prev(node.inputs.end()),
                     [&](const TensorType& type) { return type.shape[axis] % block_of(layout, axis) == 0; });
}

std::unique_ptr<Kernel> make_concat(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                    std::string& why_not) {
  const TensorType& out = node.outputs[0];
  for (const TensorType& type : node.inputs)
    if (type.layout != out.layout) return declined(why_not, to_string(type) + " and another layout of the result");
  if (!joins_whole_blocks(node, out.layout)) return declined(why_not, "an operand ends within a block");
  const std::vector<int64_t> strides = block_strides(out.shape, out.layout);
  const auto axis = static_cast<size_t>(node.attributes.integer("axis"));
  const int64_t block = block_of(out.layout, static_cast<int>(axis));
  CopyParts parts;
  int64_t position = 0;
  for (const TensorType& type : node.inputs) {
    const auto dimensions = block_walk(type.shape, out.layout, block_strides(type.shape, out.layout), strides);
    parts.push_back({StridedCopy(dimensions, unpacked_size(out.dtype), 0, position / block * strides[axis], isa),
                     static_cast<int>(parts.size())});
    position += type.shape.dims()[axis];
  }
  return make_copies(node, options, std::move(parts));
}

/// The one that most elements have; the first wins a tie. Where that is row-major, or would be cut, there is no wish.
std::optional<LayoutChoice> concat_layouts(const NodeSignature& node, const KernelOptions&) {
  Layout best;
  int64_t most = 0;
  for (const TensorType& candidate : node.inputs) {
    int64_t elements = 0;
    for (const TensorType& type : node.inputs)
      if (type.layout == candidate.layout) elements += type.elements();
    if (elements > most) best = candidate.layout;
    most = std::max(most, elements);
  }
  if (best.is_plain() || !joins_whole_blocks(node, best)) return std::nullopt;
  return LayoutChoice{std::vector<Layout>(node.inputs.size(), best), {best}};
}

std::unique_ptr<Kernel> make_constant(const NodeSignature& node, const KernelOptions& options, Isa isa) {
  const TensorType& out = node.outputs[0];
  const std::vector<int64_t> strides = row_major_strides(out.shape);
  CopyParts fills{
      fill_part(out.shape, std::vector<int64_t>(strides.size(), 0), strides, unpacked_size(out.dtype), isa)};
  return std::make_unique<Copies>(node, options.threads, std::move(fills), CopyParts{},
                                  element_of(out.dtype, node.attributes.real("value")));
}

/// Per axis the boxes before and after the operand are filled: within the operand's range of the axes before, through
/// all of the axes behind. From the first axis on where these are mere slivers, all of what is left is filled.
std::unique_ptr<Kernel> make_pad(const NodeSignature& node, const KernelOptions& options, Isa isa) {
  const Shape &in = node.inputs[0].shape, &out = node.outputs[0].shape;
  const std::vector<int64_t>&low = node.attributes.integers("low"), &high = node.attributes.integers("high");
  const std::vector<int64_t> strides = row_major_strides(out);
  const int64_t size = unpacked_size(node.outputs[0].dtype);
  CopyParts fills;
  std::vector<int64_t> start(strides.size(), 0);
  Shape box = out;
  for (int axis = 0; axis < out.rank(); ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (low[at] + high[at] == 0) continue;
    if (out.rank() > 1 && (low[at] + high[at]) * strides[at] * size < kSliverBytes) {
      fills.push_back(fill_part(box, start, strides, size, isa));
      break;
    }
    box[axis] = low[at];
    fills.push_back(fill_part(box, start, strides, size, isa));
    box[axis] = high[at];
    start[at] = low[at] + in[axis];
    fills.push_back(fill_part(box, start, strides, size, isa));
    box[axis] = in[axis];
    start[at] = low[at];
  }
  StridedCopy copy(copy_dimensions(in, row_major_strides(in), strides), size, 0, offset_of(low, strides), isa);
  return std::make_unique<Copies>(node, options.threads, std::move(fills), CopyParts{{std::move(copy), 0}},
                                  element_of(node.outputs[0].dtype, node.attributes.real("value")));
}

}  // namespace

std::unique_ptr<Kernel> make_copies(const NodeSignature& node, const KernelOptions& options, CopyParts parts) {
  return std::make_unique<Copies>(node, options.threads, CopyParts{}, std::move(parts), std::array<std::byte, 8>{});
}

void add_copies(KernelTable& table, Isa isa) {
  const auto add = [&](const char* op, auto make) {
    table.add(op, {"native",
                   [make, isa](const NodeSignature& node, const KernelOptions& options,
                               std::string& why_not) -> std::unique_ptr<Kernel> {
                     return all_plain(node, why_not) ? make(node, options, isa) : nullptr;
                   }});
  };
  add("constant", make_constant);
  add("broadcast_to", make_broadcast);
  add("strided_slice", make_strided_slice);
  add("strided_slice_backward", make_strided_slice_backward);
  add("pad", make_pad);
  const auto add_in_layouts = [&](const char* op, auto make, auto layouts) {
    table.add(op, {"native",
                   [make, isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
                     return make(node, options, isa, why_not);
                   },
                   layouts});
  };
  add_in_layouts("slice", make_slice, slice_layouts);
  add_in_layouts("concat", make_concat, concat_layouts);
}

}  // namespace weft::native
