// conv2d_backward_weights of images in bf16 with AVX512_BF16, by pointwise kernels and by those that leave out
// positions: for others oneDNN 2.6 is as fast (docs/performance.md). Both operands are brought into pairs of positions
// once, as much at a time as stays in the second-level cache; each product of channels then runs over all positions
// that are packed with its sums in registers.
//
// The sums are the gradient itself where a block of its output channels lies together, as in ABcd16b16a; each belongs
// to one thread, so that the number of threads changes nothing.
#include "weft/cpu/native/convolution/bf16_weight_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "weft/base/parallel.h"
#include "weft/cpu/native/convolution/bf16_weight_gradient_loops.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

constexpr int64_t kFewestPointwiseChannels = 64;  // with fewer, packing takes longer than it saves
constexpr int64_t kPackedBytes = 512 << 10;       // of what one sweep over the products reads again and again

struct Geometry {
  int64_t images, channels, outputs;
  int64_t image_rows, image_columns, rows, columns;  // those of the image and of the gradient
  int64_t kernel_rows, kernel_columns;
  std::vector<int64_t> stride, padding, dilation;

  explicit Geometry(const NodeSignature& node)
      : images(node.inputs[0].shape[0]),
        channels(node.inputs[0].shape[1]),
        outputs(node.inputs[1].shape[1]),
        image_rows(node.inputs[0].shape[2]),
        image_columns(node.inputs[0].shape[3]),
        rows(node.inputs[1].shape[2]),
        columns(node.inputs[1].shape[3]),
        kernel_rows(node.outputs[0].shape[2]),
        kernel_columns(node.outputs[0].shape[3]),
        stride(node.attributes.integers("stride")),
        padding(node.attributes.integers("padding")),
        dilation(node.attributes.integers("dilation")) {
    const auto all = [](const std::vector<int64_t>& values, int64_t value) {
      return values == std::vector<int64_t>{value, value};
    };
    if (!is_pointwise() || !all(stride, 1) || !all(padding, 0)) return;
    columns = image_columns = rows * columns;  // one row: no pair is cut in two at the end of each
    rows = image_rows = 1;
  }
  bool is_pointwise() const { return kernel_rows == 1 && kernel_columns == 1; }
  int64_t channel_blocks() const { return (channels + kChannelBlock - 1) / kChannelBlock; }
  int64_t output_blocks() const { return outputs / kChannelBlock; }
  int64_t pairs() const { return (columns + 1) / 2; }
  /// Rows of the image that so many rows of the gradient need; a pointwise kernel leaves out those between.
  int64_t packed_rows(int64_t gradient_rows) const {
    return is_pointwise() ? gradient_rows : (gradient_rows - 1) * stride[0] + (kernel_rows - 1) * dilation[0] + 1;
  }
  int64_t row_step() const { return is_pointwise() ? 1 : stride[0]; }
  /// Pairs of one row of the image: one for every column, since each tap begins at another; a pointwise kernel has one
  /// tap.
  int64_t pair_step() const { return is_pointwise() ? 1 : 2 * stride[1]; }
  int64_t row_pairs() const {
    return is_pointwise() ? pairs() : (kernel_columns - 1) * dilation[1] + (pairs() - 1) * pair_step() + 1;
  }
};

class Bf16WeightGradient : public Kernel {
 public:
  Bf16WeightGradient(const NodeSignature& node, int threads, const Bf16Loops& loops)
      : loops_(loops),
        g_(node),
        threads_(threads),
        weights_(node.outputs[0]),
        offsets_(axis_offsets(weights_.shape, weights_.layout)),
        storage_(storage_elements(weights_.shape, weights_.layout)) {
    // Whole images, or else whole rows of one.
    const auto bytes = [&](int64_t rows) {
      const int64_t image = g_.channel_blocks() * g_.packed_rows(rows) * g_.row_pairs(),
                    gradient = 2 * rows * g_.pairs();
      return (image + gradient) * kChannelBlock * 4;
    };
    chunk_images_ = std::clamp<int64_t>(kPackedBytes / bytes(g_.rows), 1, g_.images);
    chunk_rows_ = g_.rows;
    while (chunk_rows_ > 1 && bytes(chunk_rows_) > kPackedBytes) chunk_rows_ = (chunk_rows_ + 1) / 2;
  }
  std::string name() const override { return "native:bf16_pairs"; }
  int64_t workspace_bytes() const override {
    return 4 * (align_up(image_numbers()) + align_up(g_.output_blocks() * gradient_block()));
  }

  void run(const KernelArguments& a) override {
    if (storage_ != weights_.elements()) std::fill(a.output(0), a.output(0) + storage_, 0.0f);
    for (int64_t image = 0; image < g_.images; image += chunk_images_)
      for (int64_t row = 0; row < g_.rows; row += chunk_rows_) {
        const Chunk chunk{image, std::min(chunk_images_, g_.images - image), row, std::min(chunk_rows_, g_.rows - row)};
        share_out(chunk.images * (g_.channel_blocks() + g_.output_blocks()),
                  [&](int64_t at) { pack_plane(a, chunk, at); });
        const int64_t products = (g_.output_blocks() + 1) / 2 * g_.channels / kTileChannels;
        share_out(products, [&](int64_t at) { multiply(a, chunk, at); });
      }
  }

 private:
  struct Chunk {
    int64_t image, images, row, rows;  // of the gradient
  };

  template <typename Body>
  void share_out(int64_t count, Body&& body) const {
    parallel_run(threads_, threads_, [&](int part, int parts) {
      const auto [first, last] = split_range(count, part, parts);
      for (int64_t at = first; at < last; ++at) body(at);
    });
  }

  // Packed: the image by block of channels, image, row; the gradient likewise.
  int64_t image_row() const { return g_.row_pairs() * kChannelBlock; }
  int64_t image_plane() const { return g_.packed_rows(chunk_rows_) * image_row(); }
  int64_t image_block() const { return chunk_images_ * image_plane(); }
  int64_t image_numbers() const { return g_.channel_blocks() * image_block(); }
  int64_t gradient_row() const { return g_.pairs() * kChannelBlock; }
  int64_t gradient_plane() const { return chunk_rows_ * gradient_row(); }
  int64_t gradient_block() const { return chunk_images_ * gradient_plane(); }
  static uint32_t* packed_image(const KernelArguments& a) { return static_cast<uint32_t*>(a.workspace); }
  uint32_t* packed_gradient(const KernelArguments& a) const { return packed_image(a) + align_up(image_numbers()); }

  /// One block of channels of one image of the chunk: of the image, behind them of the gradient.
  void pack_plane(const KernelArguments& a, const Chunk& chunk, int64_t at) const {
    const int64_t image_planes = chunk.images * g_.channel_blocks();
    if (at < image_planes) {
      const int64_t n = at % chunk.images, block = at / chunk.images;
      const Bf16* plane = a.input<Bf16>(0) + ((chunk.image + n) * g_.channel_blocks() + block) * g_.image_rows *
                                                 g_.image_columns * kChannelBlock;
      uint32_t* packed = packed_image(a) + block * image_block() + n * image_plane();
      const bool pointwise = g_.is_pointwise();
      for (int64_t r = 0; r < g_.packed_rows(chunk.rows); ++r) {
        const int64_t row = chunk.row * g_.stride[0] - g_.padding[0] + r * (pointwise ? g_.stride[0] : 1);
        const bool inside = row >= 0 && row < g_.image_rows;
        loops_.pack({inside ? plane + row * g_.image_columns * kChannelBlock : nullptr, g_.image_columns,
                     -g_.padding[1], pointwise ? 2 * g_.stride[1] : 1, g_.stride[1], g_.row_pairs(), g_.row_pairs(),
                     packed + r * image_row()});
      }
      return;
    }
    const int64_t n = (at - image_planes) % chunk.images, block = (at - image_planes) / chunk.images;
    const Bf16* plane = a.input<Bf16>(1) + (((chunk.image + n) * g_.output_blocks() + block) * g_.rows + chunk.row) *
                                               g_.columns * kChannelBlock;
    for (int64_t r = 0; r < chunk.rows; ++r)
      loops_.pack({plane + r * g_.columns * kChannelBlock, g_.columns, 0, 2, 1, g_.columns / 2, g_.pairs(),
                   packed_gradient(a) + block * gradient_block() + n * gradient_plane() + r * gradient_row()});
  }

  /// All taps of kTileChannels channels of the image with two blocks of the gradient's, or its last one.
  void multiply(const KernelArguments& a, const Chunk& chunk, int64_t at) const {
    const int64_t tiles = g_.channels / kTileChannels, output_block = at / tiles * 2,
                  channel = at % tiles * kTileChannels;
    const uint32_t* image = packed_image(a) + channel / kChannelBlock * image_block() + channel % kChannelBlock;
    const int64_t output = output_block * kChannelBlock,
                  blocks = std::min<int64_t>(2, g_.output_blocks() - output_block);
    for (int64_t y = 0; y < g_.kernel_rows; ++y)
      for (int64_t x = 0; x < g_.kernel_columns; ++x)
        loops_.multiply({image + y * g_.dilation[0] * image_row() + x * g_.dilation[1] * kChannelBlock,
                         packed_gradient(a) + output_block * gradient_block(), gradient_block(), blocks, chunk.images,
                         chunk.rows, g_.pairs(), image_plane(), g_.row_step() * image_row(),
                         g_.pair_step() * kChannelBlock, gradient_plane(),
                         a.output(0) + offset(0, output) + offset(2, y) + offset(3, x), offsets_[1].data() + channel,
                         blocks == 2 ? offset(0, output + kChannelBlock) - offset(0, output) : 0,
                         chunk.image == 0 && chunk.row == 0});
  }
  int64_t offset(size_t axis, int64_t index) const { return offsets_[axis][static_cast<size_t>(index)]; }

  const Bf16Loops& loops_;
  const Geometry g_;
  const int threads_;
  const TensorType weights_;
  const std::vector<std::vector<int64_t>> offsets_;
  const int64_t storage_;
  int64_t chunk_images_, chunk_rows_;
};

}  // namespace

std::unique_ptr<Kernel> make_bf16_weight_gradient(const NodeSignature& node, int threads, Isa isa,
                                                  std::string& why_not) {
  const TensorType &image = node.inputs[0], &gradient = node.inputs[1], &weights = node.outputs[0];
  if (image.dtype != DType::bf16 || gradient.dtype != DType::bf16 || weights.dtype != DType::f32)
    return declined(why_not, fmt::format("{} and {} to {}", to_string(image), to_string(gradient), to_string(weights)));
  const Bf16Loops* loops = isa == Isa::avx512 && multiplies_bf16() ? bf16_loops() : nullptr;
  if (loops == nullptr) return declined(why_not, "this CPU has no AVX512_BF16");
  if (image.elements() == 0 || gradient.elements() == 0) return declined(why_not, "an operand is empty");
  if (node.outputs.size() > 1) return declined(why_not, "a gradient of the bias beside it");
  if (node.attributes.integer("groups") != 1 || image.shape[1] % kTileChannels != 0 ||
      gradient.shape[1] % kChannelBlock != 0)
    return declined(why_not, fmt::format("groups, or {} and {} channels", image.shape[1], gradient.shape[1]));
  const bool is_pointwise = weights.shape[2] == 1 && weights.shape[3] == 1;
  if (is_pointwise ? std::min(image.shape[1], gradient.shape[1]) < kFewestPointwiseChannels
                   : node.attributes.integers("stride") == std::vector<int64_t>{1, 1})
    return declined(why_not, fmt::format("weights of {}, for which oneDNN is as fast", to_string(weights.shape)));
  const std::string blocked = fmt::format("aBcd{}b", kChannelBlock);
  const auto offsets = axis_offsets(weights.shape, weights.layout);
  bool together = true;  // the output channels of each block
  for (size_t o = 0; o < offsets[0].size(); ++o)
    together = together && offsets[0][o] == offsets[0][o - o % kChannelBlock] + static_cast<int64_t>(o % kChannelBlock);
  if (to_string(image.layout) != blocked || to_string(gradient.layout) != blocked || !together)
    return declined(why_not,
                    fmt::format("layouts of {}, {} and {}", to_string(image), to_string(gradient), to_string(weights)));
  return std::make_unique<Bf16WeightGradient>(node, threads, *loops);
}

}  // namespace weft::native
