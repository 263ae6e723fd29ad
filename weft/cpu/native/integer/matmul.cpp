// integer_matmul, quantized_matmul and dequantized_matmul: stacks of rows by one matrix, or by one each. One matrix in
// blocks of 16 columns (BA16b4a) is read as it is, so that a constant one is laid out once; others are packed at each
// call.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "weft/cpu/native/integer/product.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

constexpr const char* kPackedLayout = "BA16b4a";

Shape leading_of(const Shape& shape) { return Shape(std::vector<int64_t>(shape.begin(), shape.end() - 2)); }

/// Where the member of a stack begins, in matrices: leading dimensions of 1 broadcast.
std::vector<int64_t> places_in(const Shape& own, const Shape& common) {
  std::vector<int64_t> places{0};
  const int missing = common.rank() - own.rank();
  std::vector<int64_t> strides(static_cast<size_t>(common.rank()), 0);
  int64_t stride = 1;
  for (int axis = own.rank(); axis-- > 0; stride *= own[axis])
    if (own[axis] != 1) strides[static_cast<size_t>(axis + missing)] = stride;
  for (int axis = 0; axis < common.rank(); ++axis) {
    std::vector<int64_t> longer;
    for (const int64_t place : places)
      for (int64_t index = 0; index < common[axis]; ++index)
        longer.push_back(place + index * strides[static_cast<size_t>(axis)]);
    places = std::move(longer);
  }
  return places;
}

class IntegerMatmul : public Kernel {
 public:
  IntegerMatmul(const NodeSignature& node, ProductPlan plan)
      : product_(plan), packed_(!node.inputs[1].layout.is_plain()) {
    const Shape &a = node.inputs[0].shape, &b = node.inputs[1].shape, &out = node.outputs[0].shape;
    if (b.rank() == 2) {
      a_places_ = b_places_ = {0};  // all rows at once
      return;
    }
    a_places_ = places_in(leading_of(a), leading_of(out));
    b_places_ = places_in(leading_of(b), leading_of(out));
  }
  std::string name() const override { return "native:integer_matmul:" + product_.instructions(); }
  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    const IntegerProduct::Call call = product_.begin(arguments);
    const ProductSize& size = product_.plan().size;
    for (size_t stack = 0; stack < a_places_.size(); ++stack) {
      const uint8_t* const a = arguments.input<uint8_t>(0) + a_places_[stack] * size.rows * size.inner;
      const uint8_t* const b = arguments.input<uint8_t>(1) + b_places_[stack] * size.inner * size.columns;
      ProductPart part;
      if (packed_)
        part.packed = b;
      else
        part.pack_columns = [this, b](int64_t first, int64_t last, uint8_t* to) { pack_columns(b, first, last, to); };
      if (product_.plan().a == DType::u8 && size.padded == size.inner) {
        part.direct = a;
        part.direct_row = size.inner;
      } else {
        part.pack_rows = [this, a](int64_t first, int64_t last, uint8_t* to) { pack_rows(a, first, last, to); };
      }
      part.first_element = static_cast<int64_t>(stack) * size.rows * size.columns;
      part.row_elements = size.columns;
      product_.run(call, part);
    }
  }

 private:
  void pack_columns(const uint8_t* b, int64_t first, int64_t last, uint8_t* to) const {
    const ProductSize& size = product_.plan().size;
    std::memset(to, product_.plan().b == DType::u8 ? 0x80 : 0,
                static_cast<size_t>((last - first) * size.groups() * kGroupBytes));
    for (int64_t block = first; block < last; ++block, to += size.groups() * kGroupBytes) {
      const int64_t column = block * kColumnBlock, count = std::min(kColumnBlock, size.columns - column);
      for (int64_t k = 0; k < size.inner; ++k) {
        const uint8_t* const from = b + k * size.columns + column;
        uint8_t* const group = to + k / kInnerGroup * kGroupBytes + k % kInnerGroup;
        for (int64_t c = 0; c < count; ++c) group[c * kInnerGroup] = from[c];
      }
    }
  }

  void pack_rows(const uint8_t* a, int64_t first, int64_t last, uint8_t* to) const {
    const ProductSize& size = product_.plan().size;
    for (int64_t row = first; row < last; ++row, to += size.padded) {
      const uint8_t* const from = a + row * size.inner;
      if (product_.plan().a == DType::i8)
        product_.loops().flip(from, to, size.inner);
      else
        std::memcpy(to, from, static_cast<size_t>(size.inner));
      std::memset(to + size.inner, 0, static_cast<size_t>(size.padded - size.inner));
    }
  }

  const IntegerProduct product_;
  const bool packed_;
  std::vector<int64_t> a_places_, b_places_;
};

std::unique_ptr<Kernel> make_matmul(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                    std::string& why_not) {
  const Shape &a = node.inputs[0].shape, &b = node.inputs[1].shape, &out = node.outputs[0].shape;
  const bool one_matrix = b.rank() == 2;
  ProductPlan plan;
  plan.threads = options.threads;
  plan.isa = isa;
  plan.size.columns = b[b.rank() - 1];
  plan.size.inner = a[a.rank() - 1];
  plan.size.padded = (plan.size.inner + kInnerGroup - 1) / kInnerGroup * kInnerGroup;
  plan.size.rows = a[a.rank() - 2];
  if (one_matrix)
    for (const int64_t dim : leading_of(out)) plan.size.rows *= dim;
  for (size_t operand = 0; operand < node.inputs.size(); ++operand) {
    const Layout& layout = node.inputs[operand].layout;
    const bool may_be_packed = operand == 1 && one_matrix && plan.size.padded == plan.size.inner;
    if (layout.is_plain() || (may_be_packed && to_string(layout) == kPackedLayout)) continue;
    return declined(why_not, fmt::format("layout {} of operand {}", to_string(layout), operand));
  }
  if (!node.outputs[0].layout.is_plain()) return declined(why_not, "the result's layout");
  plan.read_operands(node, plan.size.columns);
  return std::make_unique<IntegerMatmul>(node, plan);
}

std::optional<LayoutChoice> matmul_layouts(const NodeSignature& node, const KernelOptions&) {
  const Shape& b = node.inputs[1].shape;
  LayoutChoice choice;
  choice.inputs.resize(node.inputs.size());
  choice.outputs.resize(1);
  if (b.rank() == 2 && b[0] % kInnerGroup == 0 && b[0] > 0 && b[1] > 0)
    choice.inputs[1] = parse_layout(kPackedLayout, 2);
  return choice;
}

}  // namespace

void add_integer_matmul(KernelTable& table, Isa isa) {
  for (const char* op : {"integer_matmul", "quantized_matmul", "dequantized_matmul"})
    table.add(op, {"native",
                   [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
                     return make_matmul(node, options, isa, why_not);
                   },
                   matmul_layouts});
}

}  // namespace weft::native
