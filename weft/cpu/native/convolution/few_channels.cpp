// conv2d_backward_weights of images of few channels with kernels of 3x3 or 5x5: oneDNN's kernels fill their vectors
// with channels of the image, most of which would be padding here; these fill them with channels of the output.
//
// Each image's channels are copied into padded planes, which stay in the first-level cache; every position of the
// output's gradient is loaded once per channel and multiplied by all taps, whose sums stay in registers.
#include <fmt/format.h>

#include <vector>

#include "weft/base/parallel.h"
#include "weft/cpu/native/convolution/bf16_weight_gradient.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

struct TapSums {
  const float* image;     // where the kernel's first tap reads at the first position
  const float* gradient;  // positions one after the other, a block of channels each
  float* sums;            // [taps][channels of the block]
  int64_t rows, columns;  // of the output
  int64_t row;            // floats from one row of the padded image to the next
  int64_t stride;         // rows of the image from one position to the next
  int64_t column_stride;  // the same along a row
};

struct Loops {
  int64_t lanes;
  void (*three)(const TapSums&);
  void (*five)(const TapSums&);
  void (*position_sums)(const float* gradient, int64_t positions, float* sums);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/convolution/few_channels_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kMostChannels = 8;  // with 16, oneDNN's vectors are full

class FewChannelsBackwardWeights : public Kernel {
 public:
  FewChannelsBackwardWeights(const NodeSignature& node, int threads, const Loops& loops)
      : loops_(loops),
        image_(node.inputs[0]),
        weights_(node.outputs[0]),
        stride_(node.attributes.integers("stride")),
        padding_(node.attributes.integers("padding")),
        has_bias_(node.outputs.size() > 1),
        rows_(node.inputs[1].shape[2]),
        columns_(node.inputs[1].shape[3]),
        blocks_((weights_.shape[0] + loops.lanes - 1) / loops.lanes),
        padded_rows_(image_.shape[2] + 2 * padding_[0]),
        padded_columns_(image_.shape[3] + 2 * padding_[1]),
        parts_(static_cast<int>(std::min<int64_t>(threads, image_.shape[0]))),
        threads_(threads),
        image_offsets_(axis_offsets(image_.shape, image_.layout)),
        weight_offsets_(axis_offsets(weights_.shape, weights_.layout)),
        weight_storage_(storage_elements(weights_.shape, weights_.layout)) {}
  std::string name() const override { return "native:few_channels"; }
  int64_t workspace_bytes() const override { return parts_ * part_floats() * 4; }

  void run(const KernelArguments& a) override {
    parallel_run(threads_, parts_, [&](int part, int parts) {
      // A team may be smaller than asked for: the split into parts decides the order of the sums.
      const auto [first, last] = split_range(parts_, part, parts);
      for (int64_t at = first; at < last; ++at) add_images(a, at);
    });
    float* total = sums(a, 0);
    for (int part = 1; part < parts_; ++part) {
      const float* other = sums(a, part);
      for (int64_t i = 0; i < sum_floats(); ++i) total[i] += other[i];
    }
    write(a, total);
  }

 private:
  int64_t channels() const { return image_.shape[1]; }
  int64_t size() const { return weights_.shape[2]; }
  int64_t plane_floats() const { return padded_rows_ * padded_columns_; }
  int64_t tap_floats() const { return size() * size() * loops_.lanes; }
  /// Sums of the taps by block and channel, then those of the bias by block.
  int64_t sum_floats() const { return blocks_ * (channels() * tap_floats() + loops_.lanes); }
  int64_t part_floats() const { return align_up(sum_floats() * 4) / 4 + align_up(channels() * plane_floats() * 4) / 4; }
  float* sums(const KernelArguments& a, int64_t part) const {
    return static_cast<float*>(a.workspace) + part * part_floats();
  }

  void add_images(const KernelArguments& a, int64_t part) const {
    float* sum = sums(a, part);
    float* planes = sum + align_up(sum_floats() * 4) / 4;
    std::fill(sum, sum + sum_floats(), 0.0f);
    std::fill(planes, planes + channels() * plane_floats(), 0.0f);
    const auto [first, last] = split_range(image_.shape[0], static_cast<int>(part), parts_);
    for (int64_t n = first; n < last; ++n) {
      copy_image(a.input(0), n, planes);
      for (int64_t block = 0; block < blocks_; ++block) {
        const float* gradient = a.input(1) + (n * blocks_ + block) * rows_ * columns_ * loops_.lanes;
        for (int64_t c = 0; c < channels(); ++c) {
          const TapSums piece{planes + c * plane_floats(),
                              gradient,
                              sum + (block * channels() + c) * tap_floats(),
                              rows_,
                              columns_,
                              padded_columns_,
                              stride_[0],
                              stride_[1]};
          size() == 3 ? loops_.three(piece) : loops_.five(piece);
        }
        if (has_bias_) loops_.position_sums(gradient, rows_ * columns_, bias_sums(sum, block));
      }
    }
  }

  float* bias_sums(float* sum, int64_t block) const {
    return sum + blocks_ * channels() * tap_floats() + block * loops_.lanes;
  }

  /// Into the planes' middle; the padding around it stays 0.
  void copy_image(const float* images, int64_t n, float* planes) const {
    const auto& [batch, channel, row, column] = offsets();
    const int64_t width = image_.shape[3], step = width > 1 ? column[1] : 1;
    for (int64_t c = 0; c < channels(); ++c)
      for (int64_t h = 0; h < image_.shape[2]; ++h) {
        const float* from =
            images + batch[static_cast<size_t>(n)] + channel[static_cast<size_t>(c)] + row[static_cast<size_t>(h)];
        float* to = planes + c * plane_floats() + (h + padding_[0]) * padded_columns_ + padding_[1];
        for (int64_t w = 0; w < width; ++w) to[w] = from[w * step];
      }
  }

  struct Offsets {
    const std::vector<int64_t>&batch, &channel, &row, &column;
  };
  Offsets offsets() const { return {image_offsets_[0], image_offsets_[1], image_offsets_[2], image_offsets_[3]}; }

  void write(const KernelArguments& a, float* total) const {
    float* weights = a.output(0);
    std::fill(weights, weights + weight_storage_, 0.0f);
    for (int64_t o = 0; o < weights_.shape[0]; ++o) {
      const int64_t block = o / loops_.lanes, lane = o % loops_.lanes;
      for (int64_t c = 0; c < channels(); ++c)
        for (int64_t y = 0; y < size(); ++y)
          for (int64_t x = 0; x < size(); ++x)
            weights[weight_offset(0, o) + weight_offset(1, c) + weight_offset(2, y) + weight_offset(3, x)] =
                total[(block * channels() + c) * tap_floats() + (y * size() + x) * loops_.lanes + lane];
      if (has_bias_) a.output(1)[o] = bias_sums(total, block)[lane];
    }
  }
  int64_t weight_offset(size_t axis, int64_t index) const { return weight_offsets_[axis][static_cast<size_t>(index)]; }

  const Loops& loops_;
  const TensorType image_, weights_;
  const std::vector<int64_t> stride_, padding_;
  const bool has_bias_;
  const int64_t rows_, columns_, blocks_, padded_rows_, padded_columns_;
  const int parts_, threads_;
  const std::vector<std::vector<int64_t>> image_offsets_, weight_offsets_;
  const int64_t weight_storage_;
};

/// Columns of one row lie at equal distances, as in every layout that does not block them.
bool has_regular_rows(const TensorType& type) { return block_of(type.layout, 3) == 1; }

std::unique_ptr<Kernel> make_backward_weights(const NodeSignature& node, int threads, Isa isa, std::string& why_not) {
  const TensorType &image = node.inputs[0], &gradient = node.inputs[1], &weights = node.outputs[0];
  for (const TensorType* type : {&image, &gradient, &weights})
    if (type->dtype != DType::f32 || type->elements() == 0) return declined(why_not, to_string(*type));
  const Loops& loops = loops_for(isa);
  if (isa != Isa::avx512) return declined(why_not, "25 sums do not fit into fewer than 32 registers");
  if (image.shape[1] > kMostChannels || node.attributes.integer("groups") != 1)
    return declined(why_not, fmt::format("more than {} channels, or groups", kMostChannels));
  const int64_t size = weights.shape[2];
  if ((size != 3 && size != 5) || weights.shape[3] != size)
    return declined(why_not, fmt::format("a kernel of {} x {}", size, weights.shape[3]));
  if (node.attributes.integers("dilation") != std::vector<int64_t>{1, 1}) return declined(why_not, "dilation");
  if (to_string(gradient.layout) != fmt::format("aBcd{}b", loops.lanes) || !has_regular_rows(image))
    return declined(why_not, fmt::format("layouts of {} and {}", to_string(image), to_string(gradient)));
  return std::make_unique<FewChannelsBackwardWeights>(node, threads, loops);
}

}  // namespace

void add_few_channels(KernelTable& table, Isa isa) {
  table.add("conv2d_backward_weights",
            {"native", [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
               return node.inputs[0].dtype == DType::bf16
                          ? make_bf16_weight_gradient(node, options.threads, isa, why_not)
                          : make_backward_weights(node, options.threads, isa, why_not);
             }});
}

}  // namespace weft::native
