// conv2d_backward_data of images of few channels, without stride: oneDNN's kernels fill their vectors with channels of
// the image, most of which would be padding here; these fill them with one row of the kernel, its columns and channels
// beside each other. Every position of the output's gradient gives such rows, each of which is added to its place in a
// padded image that stays in the first-level cache, and is copied out once it is done.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

struct TapSpread {
  const float* gradient;  // [rows][columns][output channels of the block]
  const float* weights;   // of a row of the kernel: [output channels of the block][its columns and channels]
  float* image;           // where the first position adds
  int64_t rows, columns;  // of the gradient
  int64_t gradient_row;   // floats from one of its rows to the next
  int64_t image_row;      // the same in the padded image
  int64_t channels;       // of the image
  int64_t last_lanes;     // of the last vector of weights that are no padding
};

constexpr int64_t kMostVectors = 4;

struct Loops {
  int64_t lanes;
  void (*spread_tap[kMostVectors])(const TapSpread&);  // by vectors - 1
  void (*to_blocks)(const float* pixels, int64_t count, int64_t channels, float* blocks);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/convolution/few_channels_data_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kMostChannels = 8;         // with 16, oneDNN's vectors are full
constexpr int64_t kMostPaddedBytes = 32768;  // of a first-level cache

class FewChannelsBackwardData : public Kernel {
 public:
  FewChannelsBackwardData(const NodeSignature& node, int threads, const Loops& loops)
      : loops_(loops),
        weights_(node.inputs[1]),
        image_(node.outputs[0]),
        padding_(node.attributes.integers("padding")),
        rows_(node.inputs[0].shape[2]),
        columns_(node.inputs[0].shape[3]),
        blocks_((weights_.shape[0] + loops.lanes - 1) / loops.lanes),
        row_floats_(weights_.shape[3] * image_.shape[1]),
        vectors_((row_floats_ + loops.lanes - 1) / loops.lanes),
        padded_columns_(image_.shape[3] + 2 * padding_[1]),
        parts_(static_cast<int>(std::min<int64_t>(threads, image_.shape[0]))),
        threads_(threads),
        has_blocks_(to_string(image_.layout) == fmt::format("aBcd{}b", loops.lanes)),
        image_offsets_(axis_offsets(image_.shape, image_.layout)),
        weight_offsets_(axis_offsets(weights_.shape, weights_.layout)) {}
  std::string name() const override { return "native:few_channels"; }
  int64_t workspace_bytes() const override { return 4 * (weight_floats() + parts_ * padded_floats()); }

  void run(const KernelArguments& a) override {
    auto* const weights = static_cast<float*>(a.workspace);
    pack(a.input(1), weights);
    parallel_run(threads_, parts_, [&](int part, int parts) {
      const auto [first, last] = split_range(image_.shape[0], part, parts);
      float* const padded = weights + weight_floats() + part * padded_floats();
      for (int64_t n = first; n < last; ++n) {
        std::fill(padded, padded + padded_floats(), 0.0f);
        add_rows(a.input(0) + n * blocks_ * rows_ * columns_ * loops_.lanes, weights, padded);
        copy_image(padded, n, a.output(0));
      }
    });
  }

 private:
  int64_t channels() const { return image_.shape[1]; }
  int64_t row_of_weights() const { return vectors_ * loops_.lanes; }
  int64_t block_floats() const { return loops_.lanes * row_of_weights(); }
  int64_t weight_floats() const { return blocks_ * weights_.shape[2] * block_floats(); }
  /// With room for the last vector of the last row, which adds zeros beyond it.
  int64_t padded_floats() const {
    const int64_t padded_rows = image_.shape[2] + 2 * padding_[0];
    return align_up(4 * (padded_rows * padded_columns_ * channels() + row_of_weights())) / 4;
  }

  /// [blocks][rows of the kernel][output channels][columns][channels], the rest of the last vector 0.
  void pack(const float* from, float* to) const {
    std::fill(to, to + weight_floats(), 0.0f);
    const auto offset = [&](size_t axis, int64_t index) { return weight_offsets_[axis][static_cast<size_t>(index)]; };
    for (int64_t o = 0; o < weights_.shape[0]; ++o)
      for (int64_t y = 0; y < weights_.shape[2]; ++y) {
        float* row =
            to + (o / loops_.lanes * weights_.shape[2] + y) * block_floats() + o % loops_.lanes * row_of_weights();
        for (int64_t x = 0; x < weights_.shape[3]; ++x)
          for (int64_t c = 0; c < channels(); ++c)
            *row++ = from[offset(0, o) + offset(1, c) + offset(2, y) + offset(3, x)];
      }
  }

  void add_rows(const float* gradient, const float* weights, float* padded) const {
    const int64_t gradient_row = columns_ * loops_.lanes, image_row = padded_columns_ * channels();
    for (int64_t block = 0; block < blocks_; ++block)
      for (int64_t tap = 0; tap < weights_.shape[2]; ++tap)
        loops_.spread_tap[vectors_ - 1]({gradient + block * rows_ * gradient_row,
                                         weights + (block * weights_.shape[2] + tap) * block_floats(),
                                         padded + tap * image_row, rows_, columns_, gradient_row, image_row, channels(),
                                         row_floats_ - (vectors_ - 1) * loops_.lanes});
  }

  /// Without the padding around it.
  void copy_image(const float* padded, int64_t n, float* images) const {
    const int64_t height = image_.shape[2], width = image_.shape[3];
    for (int64_t h = 0; h < height; ++h) {
      const float* from = padded + ((h + padding_[0]) * padded_columns_ + padding_[1]) * channels();
      float* to = images + offset(0, n) + offset(2, h);
      if (has_blocks_) {
        loops_.to_blocks(from, width, channels(), to);
        continue;
      }
      for (int64_t w = 0; w < width; ++w)
        for (int64_t c = 0; c < channels(); ++c) to[offset(3, w) + offset(1, c)] = from[w * channels() + c];
    }
  }
  int64_t offset(size_t axis, int64_t index) const { return image_offsets_[axis][static_cast<size_t>(index)]; }

  const Loops& loops_;
  const TensorType weights_, image_;
  const std::vector<int64_t> padding_;
  const int64_t rows_, columns_, blocks_, row_floats_, vectors_, padded_columns_;
  const int parts_, threads_;
  const bool has_blocks_;
  const std::vector<std::vector<int64_t>> image_offsets_, weight_offsets_;
};

std::unique_ptr<Kernel> make_backward_data(const NodeSignature& node, int threads, Isa isa, std::string& why_not) {
  const TensorType &gradient = node.inputs[0], &weights = node.inputs[1], &image = node.outputs[0];
  for (const TensorType* type : {&gradient, &weights, &image})
    if (type->dtype != DType::f32 || type->elements() == 0) return declined(why_not, to_string(*type));
  const Loops& loops = loops_for(isa);
  if (isa != Isa::avx512) return declined(why_not, "the sums do not fit into fewer than 32 registers");
  if (image.shape[1] > kMostChannels || node.attributes.integer("groups") != 1)
    return declined(why_not, fmt::format("more than {} channels, or groups", kMostChannels));
  if (weights.shape[3] * image.shape[1] > kMostVectors * loops.lanes)
    return declined(why_not, fmt::format("a kernel of {} columns of {} channels", weights.shape[3], image.shape[1]));
  const std::vector<int64_t> ones{1, 1};
  if (node.attributes.integers("dilation") != ones || node.attributes.integers("stride") != ones)
    return declined(why_not, "stride or dilation");
  const std::vector<int64_t>& padding = node.attributes.integers("padding");
  const int64_t padded_bytes =
      4 * image.shape[1] * (image.shape[2] + 2 * padding[0]) * (image.shape[3] + 2 * padding[1]);
  if (padded_bytes > kMostPaddedBytes) return declined(why_not, "an image that the first-level cache does not hold");
  if (image.shape[0] < threads) return declined(why_not, "fewer images than threads");
  const bool has_blocks = to_string(image.layout) == fmt::format("aBcd{}b", loops.lanes);
  if (to_string(gradient.layout) != fmt::format("aBcd{}b", loops.lanes) ||
      (!has_blocks && !image.layout.blocks.empty()))
    return declined(why_not, fmt::format("layouts of {} and {}", to_string(gradient), to_string(image)));
  return std::make_unique<FewChannelsBackwardData>(node, threads, loops);
}

}  // namespace

void add_few_channels_data(KernelTable& table, Isa isa) {
  table.add("conv2d_backward_data", {"native",
                                     [isa](const NodeSignature& node, const KernelOptions& options,
                                           std::string& why_not) -> std::unique_ptr<Kernel> {
                                       return make_backward_data(node, options.threads, isa, why_not);
                                     }});
}

}  // namespace weft::native
