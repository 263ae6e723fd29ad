// Residual networks (He et al. 2015) as torchvision has them: the stride sits in the 3x3 convolution of a bottleneck.
#include <array>

#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

/// Convolution and batch norm, without bias.
ValueId conv_norm(ModelBuilder& m, ValueId x, const std::string& conv, const std::string& norm, int64_t channels,
                  int64_t kernel, int64_t stride = 1) {
  const int64_t padding = kernel / 2;
  const ValueId convolved = m.conv(x, conv,
                                   {.channels = channels,
                                    .kernel = kernel,
                                    .stride = stride,
                                    .padding = {padding, padding},
                                    .start = Start::fan_out_normal});
  return m.batch_norm(convolved, norm);
}

/// Adds the input to the path's result, through a 1x1 convolution where their shapes differ, then relu.
ValueId join(ModelBuilder& m, ValueId path, ValueId x, const std::string& name, int64_t stride) {
  const int64_t channels = m.shape(path)[1];
  const bool same = stride == 1 && m.shape(x)[1] == channels;
  const ValueId shortcut =
      same ? x : conv_norm(m, x, name + ".downsample.0", name + ".downsample.1", channels, 1, stride);
  return ops::relu(m.graph(), ops::add(m.graph(), path, shortcut, name + ".sum"), name + ".out");
}

ValueId basic_block(ModelBuilder& m, ValueId x, const std::string& name, int64_t width, int64_t stride) {
  ValueId path = conv_norm(m, x, name + ".conv1", name + ".bn1", width, 3, stride);
  path = ops::relu(m.graph(), path, name + ".relu1");
  path = conv_norm(m, path, name + ".conv2", name + ".bn2", width, 3);
  return join(m, path, x, name, stride);
}

/// `Factor` times as many channels in the middle: Zagoruyko and Komodakis 2016.
template <int Factor>
ValueId bottleneck(ModelBuilder& m, ValueId x, const std::string& name, int64_t width, int64_t stride) {
  ValueId path = conv_norm(m, x, name + ".conv1", name + ".bn1", Factor * width, 1);
  path = ops::relu(m.graph(), path, name + ".relu1");
  path = conv_norm(m, path, name + ".conv2", name + ".bn2", Factor * width, 3, stride);
  path = ops::relu(m.graph(), path, name + ".relu2");
  path = conv_norm(m, path, name + ".conv3", name + ".bn3", 4 * width, 1);
  return join(m, path, x, name, stride);
}

/// 7x7 with stride 2 and pooling for photos; 3x3 for small images, which keeps their size.
ValueId stem(ModelBuilder& m, ValueId x, bool small) {
  x = small ? conv_norm(m, x, "conv1", "bn1", 64, 3) : conv_norm(m, x, "conv1", "bn1", 64, 7, 2);
  x = ops::relu(m.graph(), x, "relu");
  return small ? x : ops::max_pool2d(m.graph(), x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, "maxpool");
}

using Block = ValueId (*)(ModelBuilder&, ValueId, const std::string&, int64_t width, int64_t stride);

ModelEntry entry(const std::string& name, const std::string& summary, Block block, std::array<int, 4> blocks) {
  const auto build = [=](const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
    ModelBuilder m(registry, name, input, mode);
    const ValueId image = m.image(1);
    const std::string stem_name =
        OptionReader(name, options).choice("stem", m.has_small_images() ? "small" : "imagenet", {"imagenet", "small"});
    ValueId x = stem(m, image, stem_name == "small");
    for (size_t layer = 0; layer < blocks.size(); ++layer) {
      for (int index = 0; index < blocks[layer]; ++index) {
        const int64_t stride = layer > 0 && index == 0 ? 2 : 1;
        x = block(m, x, fmt::format("layer{}.{}", layer + 1, index), int64_t{64} << layer, stride);
      }
    }
    x = ops::global_avg_pool2d(m.graph(), x, "avgpool");
    return m.finish(m.linear(x, "fc", {.width = input.classes}));
  };
  return {name,
          summary,
          {"stem=imagenet|small: 7x7 with stride 2 and pooling, or 3x3; by default small below 64 pixels"},
          {1, {3, 224, 224}, 1000},
          build};
}

}  // namespace

ModelEntry resnet18_entry() {
  return entry("resnet18", "residual network of 18 layers, two 3x3 convolutions per block", basic_block, {2, 2, 2, 2});
}

ModelEntry resnet34_entry() {
  return entry("resnet34", "residual network of 34 layers, two 3x3 convolutions per block", basic_block, {3, 4, 6, 3});
}

ModelEntry resnet50_entry() {
  return entry("resnet50", "residual network of 50 layers, bottleneck blocks", bottleneck<1>, {3, 4, 6, 3});
}

ModelEntry resnet101_entry() {
  return entry("resnet101", "residual network of 101 layers, bottleneck blocks", bottleneck<1>, {3, 4, 23, 3});
}

ModelEntry wide_resnet50_2_entry() {
  return entry("wide_resnet50_2", "resnet50 whose 3x3 convolutions have twice the channels", bottleneck<2>,
               {3, 4, 6, 3});
}

}  // namespace weft::models
