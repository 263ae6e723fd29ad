// Split-attention networks (Zhang et al. 2020, "ResNeSt: Split-Attention Networks"): bottlenecks of a residual network
// whose 3x3 convolution gives two versions of each channel, mixed by weights that follow from the mean over the image.
// Radix 2, one cardinal group, pooling in place of strides, a deep stem: as the authors publish their weights.
#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

class Resnest {
 public:
  Resnest(ModelBuilder& m, std::vector<int64_t> blocks, int64_t stem, int64_t width)
      : m_(m), blocks_(std::move(blocks)), stem_(stem), width_(width) {}

  /// Images [N,C,H,W] -> features [N,F].
  ValueId features(ValueId image) {
    ValueId x = stem(image);
    for (size_t layer = 0; layer < blocks_.size(); ++layer)
      for (int64_t index = 0; index < blocks_[layer]; ++index)
        x = block(x, fmt::format("layer{}.{}", layer + 1, index), width_ << layer, index == 0 && layer > 0 ? 2 : 1);
    return ops::global_avg_pool2d(m_.graph(), x, "avgpool");
  }

 private:
  static constexpr int64_t kRadix = 2, kReduction = 4, kFewestInner = 32;

  ValueId conv(ValueId x, const std::string& name, int64_t channels, int64_t kernel, int64_t stride = 1) {
    return m_.conv(x, name,
                   {.channels = channels,
                    .kernel = kernel,
                    .stride = stride,
                    .padding = {kernel / 2, kernel / 2},
                    .start = Start::fan_out_normal});
  }
  ValueId norm_relu(ValueId x, const std::string& norm, const std::string& relu) {
    return ops::relu(m_.graph(), m_.batch_norm(x, norm), relu);
  }

  ValueId stem(ValueId x) {
    x = norm_relu(conv(x, "conv1.0", stem_, 3, 2), "conv1.1", "conv1.2");
    x = norm_relu(conv(x, "conv1.3", stem_, 3), "conv1.4", "conv1.5");
    x = norm_relu(conv(x, "conv1.6", 2 * stem_, 3), "bn1", "relu");
    return ops::max_pool2d(m_.graph(), x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, "maxpool");
  }

  ValueId block(ValueId x, const std::string& name, int64_t width, int64_t stride) {
    ValueId path = norm_relu(conv(x, name + ".conv1", width, 1), name + ".bn1", name + ".relu1");
    path = split_attention(path, name + ".conv2", width);
    if (stride == 2)
      path = ops::avg_pool2d(m_.graph(), path, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
                             name + ".avd_layer");
    path = m_.batch_norm(conv(path, name + ".conv3", 4 * width, 1), name + ".bn3");
    const ValueId sum = ops::add(m_.graph(), path, shortcut(x, name, 4 * width, stride), name + ".sum");
    return ops::relu(m_.graph(), sum, name + ".out");
  }

  ValueId shortcut(ValueId x, const std::string& name, int64_t channels, int64_t stride) {
    if (stride == 1 && m_.shape(x)[1] == channels) return x;
    if (stride == 2) x = ops::avg_pool2d(m_.graph(), x, {.kernel = {2, 2}, .stride = {2, 2}}, name + ".downsample.0");
    return m_.batch_norm(conv(x, name + ".downsample.1", channels, 1), name + ".downsample.2");
  }

  /// The two versions u0, u1 of each channel become a u0 + (1 - a) u1, per image and channel: (a, 1 - a) is the softmax
  /// of what two small products make of the mean of u0 + u1 (section 3.1).
  ValueId split_attention(ValueId x, const std::string& name, int64_t channels) {
    Graph& graph = m_.graph();
    x = m_.conv(x, name + ".conv",
                {.channels = kRadix * channels,
                 .kernel = 3,
                 .padding = {1, 1},
                 .groups = kRadix,
                 .start = Start::fan_out_normal});
    x = norm_relu(x, name + ".bn0", name + ".relu0");
    const Shape shape = m_.shape(x);
    const int64_t batch = shape[0];
    std::array<ValueId, kRadix> versions;
    for (int64_t index = 0; index < kRadix; ++index)
      versions[static_cast<size_t>(index)] =
          ops::slice(graph, x, {0, index * channels, 0, 0}, {batch, (index + 1) * channels, shape[2], shape[3]},
                     fmt::format("{}.version{}", name, index));
    ValueId mean =
        ops::global_avg_pool2d(graph, ops::add(graph, versions[0], versions[1], name + ".both"), name + ".gap");
    mean = ops::reshape(graph, mean, {batch, channels, 1, 1}, name + ".gap.map");
    const int64_t inner = std::max(channels * kRadix / kReduction, kFewestInner);
    ValueId inside =
        m_.conv(mean, name + ".fc1", {.channels = inner, .kernel = 1, .bias = true, .start = Start::fan_out_normal});
    inside = norm_relu(inside, name + ".bn1", name + ".relu1");
    ValueId scores =
        m_.conv(inside, name + ".fc2",
                {.channels = kRadix * channels, .kernel = 1, .bias = true, .start = Start::fan_out_normal});
    scores = ops::reshape(graph, scores, {batch, kRadix, channels}, name + ".scores");
    const ValueId shares = ops::softmax(graph, scores, 1, name + ".shares");
    ValueId sum{};
    for (int64_t index = 0; index < kRadix; ++index) {
      ValueId share = ops::slice(graph, shares, {0, index, 0}, {batch, index + 1, channels},
                                 fmt::format("{}.share{}", name, index));
      share = ops::reshape(graph, share, {batch, channels, 1, 1}, fmt::format("{}.share{}.map", name, index));
      const ValueId part =
          ops::multiply(graph, versions[static_cast<size_t>(index)], share, fmt::format("{}.part{}", name, index));
      sum = index == 0 ? part : ops::add(graph, sum, part, name + ".mixed");
    }
    return sum;
  }

  ModelBuilder& m_;
  std::vector<int64_t> blocks_;
  int64_t stem_, width_;
};

}  // namespace

ModelEntry resnest269_entry() {
  const std::string name = "resnest269";
  const auto build = [name](const OpRegistry& registry, const ModelInput& input, const ModelOptions& options,
                            Mode mode) {
    ModelBuilder m(registry, name, input, mode);
    const ValueId image = m.image(32);
    for (const int64_t size : {m.shape(image)[2], m.shape(image)[3]})
      if (size % 32 != 0)
        fail(ErrorKind::shape, "[{}] halves images five times, their sides have to be multiples of 32, got {}", name,
             size);
    const OptionReader reader(name, options);
    const std::vector<int64_t> blocks = reader.integers("blocks", {3, 30, 48, 8}, 1, 1000);
    if (blocks.size() != 4)
      fail(ErrorKind::usage, "[{}] option blocks wants four numbers, one for each resolution, got {}", name,
           blocks.size());
    const int64_t width = reader.integer("width", 64, 4, 4096), stem = reader.integer("stem", 64, 4, 4096);
    const ValueId features = Resnest(m, blocks, stem, width).features(image);
    return m.finish(m.linear(features, "fc", {.width = input.classes}));
  };
  return {name,
          "split-attention network of 269 layers, radix 2 (Zhang et al. 2020)",
          {"blocks=3,30,48,8: of each resolution; 3,4,6,3 is ResNeSt-50 with stem=32, 3,4,23,3 ResNeSt-101",
           "stem=64: channels of the stem's first layers", "width=64: channels inside the first blocks"},
          {1, {3, 416, 416}, 1000},
          build};
}

}  // namespace weft::models
