// integer_conv2d and quantized_conv2d of images whose channels lie side by side: every position is a row of the numbers
// that its window sees, kernel row by kernel row, which are multiplied by the weights as a matrix product. Where the
// window is one pixel the image itself is those rows. Weights whose channels come in groups of 4 are read in blocks of
// 16 output channels (AcdB16a4b), so that constant ones are laid out once; others are packed at each call.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "weft/cpu/native/integer/images.h"
#include "weft/cpu/native/integer/product.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

constexpr const char* kPackedLayout = "AcdB16a4b";

class IntegerConvolution : public Kernel {
 public:
  IntegerConvolution(const NodeSignature& node, const IntegerImages& images, ProductPlan plan)
      : g_(images), product_(std::move(plan)), packed_(!node.inputs[1].layout.is_plain()) {}
  std::string name() const override { return "native:integer_convolution:" + product_.instructions(); }
  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    const IntegerProduct::Call call = product_.begin(arguments);
    const auto fill = static_cast<uint8_t>(call.a_zero);  // what padding holds: a0'
    for (int64_t group = 0; group < g_.window.groups; ++group) {
      const uint8_t* const image = arguments.input<uint8_t>(0) + group * g_.group_channels();
      const uint8_t* const weight = arguments.input<uint8_t>(1);
      ProductPart part;
      if (packed_)
        part.packed = weight;
      else
        part.pack_columns = [this, weight, group](int64_t first, int64_t last, uint8_t* to) {
          pack_columns(weight, group, first, last, to);
        };
      if (is_direct()) {
        part.direct = image;
        part.direct_row = g_.channels;
      } else {
        part.pack_rows = [this, image, fill](int64_t first, int64_t last, uint8_t* to) {
          pack_rows(image, fill, first, last, to);
        };
      }
      part.first_channel = part.first_element = group * product_.plan().size.columns;
      part.row_elements = g_.outputs;
      product_.run(call, part);
    }
  }

 private:
  /// Rows of the product are pixels of the image.
  bool is_direct() const {
    const bool stays =
        g_.window.stride == std::vector<int64_t>{1, 1} &&
        std::all_of(g_.window.padding.begin(), g_.window.padding.end(), [](int64_t p) { return p == 0; });
    return g_.kernel_rows == 1 && g_.kernel_columns == 1 && stays && product_.plan().a == DType::u8 &&
           g_.group_channels() % kInnerGroup == 0;
  }

  void pack_columns(const uint8_t* weight, int64_t group, int64_t first, int64_t last, uint8_t* to) const {
    const ProductSize& size = product_.plan().size;
    std::memset(to, product_.plan().b == DType::u8 ? 0x80 : 0,
                static_cast<size_t>((last - first) * size.groups() * kGroupBytes));
    const int64_t taps = g_.kernel_rows * g_.kernel_columns;
    for (int64_t column = first * kColumnBlock; column < std::min(size.columns, last * kColumnBlock); ++column) {
      const uint8_t* const from = weight + (group * size.columns + column) * g_.group_channels() * taps;
      uint8_t* const block =
          to + (column / kColumnBlock - first) * size.groups() * kGroupBytes + column % kColumnBlock * kInnerGroup;
      for (int64_t c = 0; c < g_.group_channels(); ++c)
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t k = tap / g_.kernel_columns * line_bytes() + tap % g_.kernel_columns * g_.group_channels() + c;
          block[k / kInnerGroup * kGroupBytes + k % kInnerGroup] = from[c * taps + tap];
        }
    }
  }

  /// Numbers of one row of the kernel, filled up to groups of 4.
  int64_t line_bytes() const { return product_.plan().size.padded / g_.kernel_rows; }

  void copy(const uint8_t* from, uint8_t* to, int64_t count) const {
    if (product_.plan().a == DType::i8)
      product_.loops().flip(from, to, count);
    else
      std::memcpy(to, from, static_cast<size_t>(count));
  }

  void pack_rows(const uint8_t* image, uint8_t fill, int64_t first, int64_t last, uint8_t* to) const {
    const int64_t line = g_.kernel_columns * g_.group_channels();
    for (int64_t row = first; row < last; ++row) {
      const int64_t x = row % g_.out_columns, y = row / g_.out_columns % g_.out_rows,
                    n = row / (g_.out_columns * g_.out_rows);
      const int64_t left = x * g_.window.stride[1] - g_.window.padding[1];
      for (int64_t i = 0; i < g_.kernel_rows; ++i, to += line_bytes()) {
        const int64_t source = y * g_.window.stride[0] - g_.window.padding[0] + i * g_.window.dilation[0];
        if (source < 0 || source >= g_.rows)
          std::memset(to, fill, static_cast<size_t>(line));
        else
          pack_line(image + (n * g_.rows + source) * g_.columns * g_.channels, fill, left, to);
        std::memset(to + line, 0, static_cast<size_t>(line_bytes() - line));
      }
    }
  }

  /// What one row of the kernel sees from the column `left` on.
  void pack_line(const uint8_t* image_row, uint8_t fill, int64_t left, uint8_t* to) const {
    const int64_t channels = g_.group_channels(), step = g_.window.dilation[1];
    if (step == 1 && g_.window.groups == 1) {  // side by side: what lies inside at once
      const int64_t begin = std::clamp<int64_t>(-left, 0, g_.kernel_columns);
      const int64_t end = std::clamp<int64_t>(g_.columns - left, begin, g_.kernel_columns);
      std::memset(to, fill, static_cast<size_t>(begin * channels));
      if (end > begin) copy(image_row + (left + begin) * channels, to + begin * channels, (end - begin) * channels);
      std::memset(to + end * channels, fill, static_cast<size_t>((g_.kernel_columns - end) * channels));
      return;
    }
    for (int64_t j = 0; j < g_.kernel_columns; ++j, to += channels) {
      const int64_t column = left + j * step;
      if (column < 0 || column >= g_.columns)
        std::memset(to, fill, static_cast<size_t>(channels));
      else
        copy(image_row + column * g_.channels, to, channels);
    }
  }

  const IntegerImages g_;
  const IntegerProduct product_;
  const bool packed_;
};

bool may_be_packed(const NodeSignature& node) {
  const Shape& weight = node.inputs[1].shape;
  return node.attributes.integer("groups") == 1 && weight[1] % kInnerGroup == 0 && weight.elements() > 0;
}

std::unique_ptr<Kernel> make_convolution(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                         std::string& why_not) {
  const auto images = read_integer_images(node, why_not);
  if (!images) return nullptr;
  const Layout& weights = node.inputs[1].layout;
  if (!weights.is_plain() && !(may_be_packed(node) && to_string(weights) == kPackedLayout))
    return declined(why_not, "layout of the weights " + to_string(node.inputs[1]));
  if (images->is_depthwise()) return declined(why_not, "it is depthwise");
  ProductPlan plan;
  plan.threads = options.threads;
  plan.isa = isa;
  const int64_t line = images->kernel_columns * images->group_channels();
  plan.size.rows = images->images * images->out_rows * images->out_columns;
  plan.size.columns = images->outputs / images->window.groups;
  plan.size.inner = images->kernel_rows * line;
  plan.size.padded = images->kernel_rows * ((line + kInnerGroup - 1) / kInnerGroup * kInnerGroup);
  plan.read_operands(node, images->outputs);
  return std::make_unique<IntegerConvolution>(node, *images, std::move(plan));
}

std::optional<LayoutChoice> convolution_layouts(const NodeSignature& node, const KernelOptions&) {
  LayoutChoice choice;
  choice.inputs.resize(node.inputs.size());
  choice.outputs = {channels_last(4)};
  choice.inputs[0] = channels_last(4);
  if (may_be_packed(node)) choice.inputs[1] = parse_layout(kPackedLayout, 4);
  return choice;
}

}  // namespace

void add_integer_convolution(KernelTable& table, Isa isa) {
  for (const char* op : {"integer_conv2d", "quantized_conv2d"}) {
    table.add(op, {"native",
                   [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
                     return make_convolution(node, options, isa, why_not);
                   },
                   convolution_layouts});
    add_integer_depthwise(table, op, isa);
  }
}

}  // namespace weft::native
