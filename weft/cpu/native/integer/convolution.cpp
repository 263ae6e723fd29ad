// integer_conv2d and quantized_conv2d of images whose channels lie side by side: every position is a row of the numbers
// that its window sees, kernel row by kernel row, which are multiplied by the weights as a matrix product. Where the
// window is one pixel the image itself is those rows. Weights are read in blocks of 16 output channels (AcdB16a4b), so
// that constant ones are laid out once; those that do not fit are packed at each call.
//
// Where the processor has VNNI, nothing is packed: the image is copied once with the zero point around it, and the tile
// reads the rows of a window from there, piece by piece. Channels are filled up on the way to groups of four bytes,
// those of pictures to one. Such images may be plain.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/base/parallel.h"
#include "weft/cpu/native/integer/images.h"
#include "weft/cpu/native/integer/product.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

constexpr const char* kPackedLayout = "AcdB16a4b";
constexpr int64_t kShortCopy = 32;  // bytes that are copied at once, more than are wanted

int64_t in_fours(int64_t count) { return (count + kInnerGroup - 1) / kInnerGroup * kInnerGroup; }

/// An image with as many channels as fill groups of 4, and with its padding.
struct WideImages {
  int64_t channels, rows, columns;
  int64_t row_bytes() const { return columns * channels; }
  int64_t image_bytes() const { return rows * row_bytes(); }
};

bool has_channels_in_planes(const NodeSignature& node) { return node.inputs[0].layout.is_plain(); }

class IntegerConvolution : public Kernel {
 public:
  IntegerConvolution(const NodeSignature& node, const IntegerImages& images, ProductPlan plan)
      : g_(images),
        product_(plan),
        packed_(!node.inputs[1].layout.is_plain()),
        planes_(has_channels_in_planes(node) && g_.channels > 1),
        widened_(packed_ && g_.group_channels() % kInnerGroup != 0),
        in_pieces_(packed_ && product_.reads_pieces() && !is_direct()),
        wide_{in_fours(g_.channels), g_.rows + g_.window.padding[0] + g_.window.padding[2],
              g_.columns + g_.window.padding[1] + g_.window.padding[3]} {
    if (in_pieces_) find_pieces();
  }
  std::string name() const override { return "native:integer_convolution:" + product_.instructions(); }
  int64_t workspace_bytes() const override {
    return product_.workspace_bytes() + (copies() ? align_up(g_.images * wide_.image_bytes() + kPackingSlack) : 0);
  }

  void run(const KernelArguments& arguments) override {
    const IntegerProduct::Call call = product_.begin(arguments);
    const auto fill = static_cast<uint8_t>(call.a_zero);  // what padding holds: a0'
    auto* const copied = static_cast<uint8_t*>(arguments.workspace) + product_.workspace_bytes();
    if (copies()) widen(arguments.input<uint8_t>(0), fill, copied);
    const uint8_t* const wide = copies() ? copied : arguments.input<uint8_t>(0);
    for (int64_t group = 0; group < g_.window.groups; ++group)
      product_.run(call, part_of(arguments, group, fill, wide));
  }

 private:
  ProductPart part_of(const KernelArguments& arguments, int64_t group, uint8_t fill, const uint8_t* wide) const {
    const uint8_t* const image = arguments.input<uint8_t>(0) + group * g_.group_channels();
    const uint8_t* const weight = arguments.input<uint8_t>(1);
    ProductPart part;
    if (packed_)
      part.packed = weight + group * product_.plan().size.packed_bytes();
    else
      part.pack_columns = [this, weight, group](int64_t first, int64_t last, uint8_t* to) {
        pack_columns(weight, group, first, last, to);
      };
    if (in_pieces_) {
      part.pieces = pieces_;
      part.find_rows = [this, from = wide + group * g_.group_channels()](int64_t first, int64_t count,
                                                                         const uint8_t** starts) {
        find_rows(from, first, count, starts);
      };
    }
    if (widened_) {
      part.pack_rows = [this, wide](int64_t first, int64_t last, uint8_t* to) {
        pack_wide_rows(wide, first, last, to);
      };
    } else if (is_direct()) {
      part.direct = image;
      part.direct_row = g_.channels;
    } else {
      part.pack_rows = [this, image, fill](int64_t first, int64_t last, uint8_t* to) {
        pack_rows(image, fill, first, last, to);
      };
    }
    part.first_channel = part.first_element = group * product_.plan().size.columns;
    part.row_elements = g_.outputs;
    return part;
  }

  bool has_padding() const {
    return std::any_of(g_.window.padding.begin(), g_.window.padding.end(), [](int64_t p) { return p != 0; });
  }
  /// Whether the image is copied, with its padding and as unsigned bytes, before it is read.
  bool copies() const { return widened_ || (in_pieces_ && (has_padding() || product_.plan().a == DType::i8)); }

  /// What the window sees lies in as many pieces as it has rows, or pixels where other groups lie between.
  void find_pieces() {
    const bool joins_columns = g_.window.groups == 1 && g_.window.dilation[1] == 1;
    const int64_t columns = joins_columns ? 1 : g_.kernel_columns;
    for (int64_t i = 0; i < g_.kernel_rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        pieces_.push_back(i * g_.window.dilation[0] * wide_.row_bytes() + j * g_.window.dilation[1] * wide_.channels);
  }

  void find_rows(const uint8_t* wide, int64_t first, int64_t count, const uint8_t** starts) const {
    int64_t x = first % g_.out_columns, y = first / g_.out_columns % g_.out_rows,
            n = first / (g_.out_columns * g_.out_rows);
    const int64_t right = g_.window.stride[1] * wide_.channels, down = g_.window.stride[0] * wide_.row_bytes();
    for (int64_t row = 0; row < count; ++row) {
      starts[row] = wide + n * wide_.image_bytes() + y * down + x * right;
      if (++x < g_.out_columns) continue;
      x = 0;
      if (++y < g_.out_rows) continue;
      y = 0;
      ++n;
    }
  }

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

  void widen(const uint8_t* image, uint8_t fill, uint8_t* to) const {
    const int64_t lines = g_.images * wide_.rows;
    parallel_for(product_.plan().threads, lines, std::max<int64_t>(1, (int64_t{1} << 15) / wide_.row_bytes()),
                 [&](int64_t first, int64_t last) {
                   for (int64_t line = first; line < last; ++line)
                     widen_line(image, fill, line, to + line * wide_.row_bytes());
                 });
  }

  void widen_line(const uint8_t* image, uint8_t fill, int64_t line, uint8_t* to) const {
    const int64_t n = line / wide_.rows, y = line % wide_.rows - g_.window.padding[0];
    const int64_t left = g_.window.padding[1];
    const bool inside = y >= 0 && y < g_.rows;
    const uint8_t flip = product_.plan().a == DType::i8 ? 0x80 : 0;
    if (wide_.channels == g_.channels) {
      std::memset(to, fill, static_cast<size_t>(wide_.row_bytes()));
      if (inside)
        copy(image + (n * g_.rows + y) * g_.columns * g_.channels, to + left * g_.channels, g_.columns * g_.channels);
      return;
    }
    std::memset(to, 0, static_cast<size_t>(wide_.row_bytes()));
    for (int64_t c = 0; c < g_.channels; ++c) {
      uint8_t* const own = to + c;
      const int64_t begin = inside ? left : wide_.columns, end = inside ? left + g_.columns : wide_.columns;
      for (int64_t x = 0; x < begin; ++x) own[x * wide_.channels] = fill;
      for (int64_t x = end; x < wide_.columns; ++x) own[x * wide_.channels] = fill;
      if (!inside) continue;
      const int64_t step = planes_ ? 1 : g_.channels;
      const uint8_t* const from = planes_ ? image + ((n * g_.channels + c) * g_.rows + y) * g_.columns
                                          : image + (n * g_.rows + y) * g_.columns * g_.channels + c;
      spread(from, step, flip, own + left * wide_.channels);
    }
  }

  /// One channel of a row.
  void spread(const uint8_t* from, int64_t step, uint8_t flip, uint8_t* to) const {
    if (wide_.channels == kInnerGroup && step == 1) {
      for (int64_t x = 0; x < g_.columns; ++x) to[x * kInnerGroup] = static_cast<uint8_t>(from[x] ^ flip);
      return;
    }
    for (int64_t x = 0; x < g_.columns; ++x) to[x * wide_.channels] = static_cast<uint8_t>(from[x * step] ^ flip);
  }

  void pack_wide_rows(const uint8_t* wide, int64_t first, int64_t last, uint8_t* to) const {
    const int64_t line = line_bytes(), stride = g_.window.stride[1] * wide_.channels;
    const int64_t down = g_.window.dilation[0] * wide_.row_bytes();
    for (int64_t row = first; row < last; ++row) {
      const int64_t x = row % g_.out_columns, y = row / g_.out_columns % g_.out_rows,
                    n = row / (g_.out_columns * g_.out_rows);
      const uint8_t* from = wide + n * wide_.image_bytes() + y * g_.window.stride[0] * wide_.row_bytes() + x * stride;
      for (int64_t i = 0; i < g_.kernel_rows; ++i, from += down, to += line) {
        if (line <= kShortCopy)
          std::memcpy(to, from, kShortCopy);  // what is too much is written over
        else
          std::memcpy(to, from, static_cast<size_t>(line));
      }
    }
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
        if (line < line_bytes()) std::memset(to + line, 0, static_cast<size_t>(line_bytes() - line));
      }
    }
  }

  /// What one row of the kernel sees from the column `left` on.
  void pack_line(const uint8_t* image_row, uint8_t fill, int64_t left, uint8_t* to) const {
    const int64_t channels = g_.group_channels(), step = g_.window.dilation[1];
    if (step == 1 && g_.window.groups == 1) {  // side by side: what lies inside at once
      const int64_t begin = std::clamp<int64_t>(-left, 0, g_.kernel_columns);
      const int64_t end = std::clamp<int64_t>(g_.columns - left, begin, g_.kernel_columns);
      if (begin > 0) std::memset(to, fill, static_cast<size_t>(begin * channels));
      if (end > begin) copy(image_row + (left + begin) * channels, to + begin * channels, (end - begin) * channels);
      if (end < g_.kernel_columns)
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
  const bool packed_;   // the weights
  const bool planes_;   // the image is plain
  const bool widened_;  // the image's channels, up to groups of 4
  const bool in_pieces_;
  const WideImages wide_;
  std::vector<int64_t> pieces_;
};

/// Channels that are no groups of 4: filled up, also where there is one, since packing costs more than what is
/// multiplied with zeros.
bool may_be_widened(const NodeSignature& node) {
  const int64_t channels = node.inputs[1].shape[1];
  return node.attributes.integer("groups") == 1 && channels % kInnerGroup != 0 &&
         node.attributes.integers("dilation")[1] == 1 && node.inputs[1].dtype == DType::i8;  // filled up with zeros
}

/// Blocks of 16 output channels must not cross groups.
bool may_be_packed(const NodeSignature& node) {
  const Shape& weight = node.inputs[1].shape;
  const int64_t groups = node.attributes.integer("groups");
  const bool has_whole_blocks = groups == 1 || weight[0] / groups % kColumnBlock == 0;
  return weight.elements() > 0 && has_whole_blocks && (weight[1] % kInnerGroup == 0 || may_be_widened(node));
}

std::unique_ptr<Kernel> make_convolution(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                         std::string& why_not) {
  const Layout& weights = node.inputs[1].layout;
  const bool packed = !weights.is_plain();
  if (packed && !(may_be_packed(node) && to_string(weights) == kPackedLayout))
    return declined(why_not, "layout of the weights " + to_string(node.inputs[1]));
  const bool widened = packed && may_be_widened(node);
  const auto images = read_integer_images(node, why_not, /*takes_plain=*/widened);
  if (!images) return nullptr;
  if (images->is_depthwise()) return declined(why_not, "it is depthwise");
  ProductPlan plan;
  plan.threads = options.threads;
  plan.isa = isa;
  const int64_t channels = widened ? in_fours(images->group_channels()) : images->group_channels();
  plan.size.rows = images->images * images->out_rows * images->out_columns;
  plan.size.columns = images->outputs / images->window.groups;
  plan.size.inner = images->kernel_rows * images->kernel_columns * images->group_channels();
  plan.size.padded = images->kernel_rows * in_fours(images->kernel_columns * channels);
  plan.read_operands(node, images->outputs);
  return std::make_unique<IntegerConvolution>(node, *images, plan);
}

std::optional<LayoutChoice> convolution_layouts(const NodeSignature& node, const KernelOptions&) {
  LayoutChoice choice;
  choice.inputs.resize(node.inputs.size());
  choice.outputs = {channels_last(4)};
  const bool stays_plain = may_be_widened(node) && node.inputs[0].layout.is_plain();
  choice.inputs[0] = stays_plain ? Layout{} : channels_last(4);
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
