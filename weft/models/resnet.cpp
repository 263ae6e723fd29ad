// Residual networks (He et al. 2015) as torchvision has them: the stride sits in the 3x3 convolution of a bottleneck.
// Options change stem, shortcuts and down-sampling as timm does, with timm's names.
#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"

namespace weft::models {
namespace {

/// Two 3x3 convolutions per block, or a bottleneck with `middle` times as many channels in its 3x3 convolution as
/// usual (Zagoruyko and Komodakis 2016).
struct Depth {
  std::array<int, 4> blocks;
  bool bottleneck = false;
  int64_t middle = 1;
};

using Choices = std::vector<std::string>;
Choices stems() { return {"imagenet", "small", "deep"}; }
Choices stem_reductions() { return {"both", "convolution", "pooling"}; }
Choices shortcuts() { return {"strided", "average_pool"}; }
Choices downsamples() { return {"strided", "blur"}; }
Choices no_yes() { return {"no", "yes"}; }

/// What the options choose.
struct Design {
  std::string stem = "imagenet", stem_reduction = "both", shortcut = "strided", downsample = "strided",
              zero_init_residual = "no";
  int64_t last_stride = 2, width = 64;
};

/// "stem=deep|imagenet|small": the usual choice first.
std::string choices(const std::string& name, const std::string& usual, const Choices& all) {
  std::string text = name + "=" + usual;
  for (const std::string& choice : all)
    if (choice != usual) text += "|" + choice;
  return text;
}

std::vector<std::string> described_options(const Design& usual) {
  return {
      choices("stem", usual.stem, stems()) +
          ": imagenet 7x7 with stride 2, deep three 3x3, the first with stride 2 (ResNet-C), both with pooling; small "
          "3x3, the default below 64 pixels",
      choices("stem_reduction", usual.stem_reduction, stem_reductions()) +
          ": which of the stem's two layers halve the image; with one alone all maps have twice the height and width, "
          "for four times the work",
      choices("shortcut", usual.shortcut, shortcuts()) +
          ": where a block halves the image its shortcut takes one pixel of four, or averages of 2x2 (ResNet-D; with "
          "stem=deep timm's resnet50d)",
      choices("downsample", usual.downsample, downsamples()) +
          ": where a block or the stem's pooling halves the image they blur it first (Zhang 2019; timm's resnetblur50)",
      fmt::format("last_stride={}: of layer4; 1 leaves its maps twice as high and wide",
                  usual.last_stride == 2 ? "2|1" : "1|2"),
      choices("zero_init_residual", usual.zero_init_residual, no_yes()) +
          ": every block begins as its shortcut alone (Goyal et al. 2017)",
      fmt::format("width={}: channels of the first layer", usual.width)};
}

Design read_design(const std::string& model, const ModelOptions& options, const Design& usual, bool small_images) {
  const OptionReader reader(model, options);
  Design design;
  design.stem = reader.choice("stem", small_images ? "small" : usual.stem, stems());
  design.stem_reduction = reader.choice("stem_reduction", usual.stem_reduction, stem_reductions());
  design.shortcut = reader.choice("shortcut", usual.shortcut, shortcuts());
  design.downsample = reader.choice("downsample", usual.downsample, downsamples());
  design.last_stride = reader.integer("last_stride", usual.last_stride, 1, 2);
  design.zero_init_residual = reader.choice("zero_init_residual", usual.zero_init_residual, no_yes());
  design.width = reader.integer("width", usual.width, 1, 4096);
  if (design.stem == "small" && options.contains("stem_reduction")) {
    fail(ErrorKind::usage,
         "[{}] option stem_reduction is for the stems imagenet and deep: stem 'small' keeps the image's size; leave it "
         "away, or choose one of these",
         model);
  }
  return design;
}

class Resnet {
 public:
  Resnet(ModelBuilder& m, std::string model, const Depth& depth, const Design& design)
      : m_(m), model_(std::move(model)), depth_(depth), design_(design) {}

  /// Images [N,C,H,W] -> features [N,F].
  ValueId features(ValueId image) {
    ValueId x = stem(image);
    for (size_t layer = 0; layer < depth_.blocks.size(); ++layer) {
      const int64_t layer_stride = layer == 0 ? 1 : layer == 3 ? design_.last_stride : 2;
      for (int index = 0; index < depth_.blocks[layer]; ++index) {
        const std::string name = fmt::format("layer{}.{}", layer + 1, index);
        const int64_t width = design_.width << layer, stride = index == 0 ? layer_stride : 1;
        const ValueId path = depth_.bottleneck ? bottleneck(x, name, width, stride) : basic(x, name, width, stride);
        const ValueId sum = ops::add(m_.graph(), path, shortcut(x, path, name, stride), name + ".sum");
        x = ops::relu(m_.graph(), sum, name + ".out");
      }
    }
    return ops::global_avg_pool2d(m_.graph(), x, "avgpool");
  }

 private:
  /// Without bias.
  ValueId conv(ValueId x, const std::string& name, int64_t channels, int64_t kernel, int64_t stride = 1) {
    const int64_t padding = kernel / 2;
    return m_.conv(x, name,
                   {.channels = channels,
                    .kernel = kernel,
                    .stride = stride,
                    .padding = {padding, padding},
                    .start = Start::fan_out_normal});
  }

  /// 7x7, or three 3x3, and pooling for photos; 3x3 for small images, which keeps their size.
  ValueId stem(ValueId x) {
    const int64_t width = design_.width, stride = design_.stem_reduction == "pooling" ? 1 : 2;
    if (design_.stem == "deep") {
      const int64_t half = std::max<int64_t>(1, width / 2);
      x = ops::relu(m_.graph(), m_.batch_norm(conv(x, "conv1.0", half, 3, stride), "conv1.1"), "conv1.2");
      x = ops::relu(m_.graph(), m_.batch_norm(conv(x, "conv1.3", half, 3), "conv1.4"), "conv1.5");
      x = conv(x, "conv1.6", width, 3);
    } else {
      x = design_.stem == "small" ? conv(x, "conv1", width, 3) : conv(x, "conv1", width, 7, stride);
    }
    x = ops::relu(m_.graph(), m_.batch_norm(x, "bn1"), "relu");
    if (design_.stem == "small" || design_.stem_reduction == "convolution") return x;
    const int64_t step = design_.downsample == "blur" ? 1 : 2;
    x = ops::max_pool2d(m_.graph(), x, {.kernel = {3, 3}, .stride = {step, step}, .padding = {1, 1}}, "maxpool");
    return step == 2 ? x : blur(x, "maxpool.blur");
  }

  ValueId basic(ValueId x, const std::string& name, int64_t width, int64_t stride) {
    x = halving_conv(x, name, "1", width, stride);
    return last_norm(conv(x, name + ".conv2", width, 3), name + ".bn2");
  }

  ValueId bottleneck(ValueId x, const std::string& name, int64_t width, int64_t stride) {
    const int64_t middle = depth_.middle * width;
    x = ops::relu(m_.graph(), m_.batch_norm(conv(x, name + ".conv1", middle, 1), name + ".bn1"), name + ".relu1");
    x = halving_conv(x, name, "2", middle, stride);
    return last_norm(conv(x, name + ".conv3", 4 * width, 1), name + ".bn3");
  }

  /// A block's 3x3 convolution with norm and relu, whose stride is in the convolution or in the blur behind all three.
  ValueId halving_conv(ValueId x, const std::string& name, const std::string& number, int64_t channels,
                       int64_t stride) {
    const bool blurs = stride == 2 && design_.downsample == "blur";
    x = conv(x, name + ".conv" + number, channels, 3, blurs ? 1 : stride);
    x = ops::relu(m_.graph(), m_.batch_norm(x, name + ".bn" + number), name + ".relu" + number);
    return blurs ? blur(x, name + ".blur") : x;
  }

  ValueId last_norm(ValueId x, const std::string& name) {
    return m_.batch_norm(x, name, {.scale_starts_at_zero = design_.zero_init_residual == "yes"});
  }

  /// The block's input itself, or, where its shape is another than the path's, a 1x1 convolution of it.
  ValueId shortcut(ValueId x, ValueId path, const std::string& name, int64_t stride) {
    const int64_t channels = m_.shape(path)[1];
    if (stride == 1 && m_.shape(x)[1] == channels) return x;
    // timm has the pooling as downsample.0, also where it does nothing.
    const bool pools = design_.shortcut == "average_pool";
    const std::string prefix = name + ".downsample.";
    if (pools && stride == 2) x = ops::avg_pool2d(m_.graph(), to_even(x, name), {}, prefix + "0");
    x = conv(x, prefix + (pools ? "1" : "0"), channels, 1, pools ? 1 : stride);
    return m_.batch_norm(x, prefix + (pools ? "2" : "1"));
  }

  /// An odd last row or column twice, so that pooling by 2x2 keeps it as it is: PyTorch's ceil_mode with
  /// count_include_pad=False, which gives as many rows as a strided convolution.
  ValueId to_even(ValueId x, const std::string& name) {
    for (const int axis : {2, 3}) {
      const Shape shape = m_.shape(x);
      if (shape[axis] % 2 == 0) continue;
      std::vector<int64_t> starts(4, 0), ends(4);
      for (int dim = 0; dim < 4; ++dim) ends[static_cast<size_t>(dim)] = shape[dim];
      starts[static_cast<size_t>(axis)] = shape[axis] - 1;
      const ValueId last = ops::slice(m_.graph(), x, starts, ends, name + ".last");
      x = ops::concat(m_.graph(), {x, last}, axis, name + ".even");
    }
    return x;
  }

  /// (1 2 1) x (1 2 1) / 16 with stride 2, the image mirrored at its edges (timm's BlurPool2d): averages of 2x2 twice.
  /// What mirroring adds to the first averages equals their own edge, so that the second ones leave it out.
  ValueId blur(ValueId x, const std::string& name) {
    const Shape& shape = m_.shape(x);
    if (shape[2] < 2 || shape[3] < 2) {
      fail(ErrorKind::shape,
           "[{}] downsample=blur halves maps of at least 2 x 2 values, those before '{}' are {} x {}; take larger "
           "images, or downsample=strided",
           model_, name, shape[2], shape[3]);
    }
    x = ops::avg_pool2d(m_.graph(), x, {.kernel = {2, 2}, .stride = {1, 1}}, name + ".averages");
    using Pair = std::vector<int64_t>;
    return m_.graph().add(
        "avg_pool2d", {x},
        {{"kernel", Pair{2, 2}}, {"stride", Pair{2, 2}}, {"padding", Pair{1, 1}}, {"count_padding", false}}, name);
  }

  ModelBuilder& m_;
  std::string model_;
  Depth depth_;
  Design design_;
};

ModelEntry entry(const std::string& name, const std::string& summary, const Depth& depth, const Design& usual = {},
                 int64_t pixels = 224) {
  const auto build = [=](const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
    ModelBuilder m(registry, name, input, mode);
    const ValueId image = m.image(1);
    const Design design = read_design(name, options, usual, m.has_small_images());
    const ValueId features = Resnet(m, name, depth, design).features(image);
    return m.finish(m.linear(features, "fc", {.width = input.classes}));
  };
  return {name, summary, described_options(usual), {1, {3, pixels, pixels}, 1000}, build};
}

}  // namespace

ModelEntry resnet18_entry() {
  return entry("resnet18", "residual network of 18 layers, two 3x3 convolutions per block", {{2, 2, 2, 2}});
}

ModelEntry resnet34_entry() {
  return entry("resnet34", "residual network of 34 layers, two 3x3 convolutions per block", {{3, 4, 6, 3}});
}

ModelEntry resnet50_entry() {
  return entry("resnet50", "residual network of 50 layers, bottleneck blocks", {{3, 4, 6, 3}, true});
}

/// At 128x128 the last maps of resnet50 are 4x4; here they are 8x8, as they are 7x7 at 224x224.
ModelEntry resnet50_128_entry() {
  return entry("resnet50_128", "resnet50 for photos of 128x128: ResNet-D, whose stem and shortcuts leave out less",
               {{3, 4, 6, 3}, true}, {.stem = "deep", .shortcut = "average_pool"}, 128);
}

ModelEntry resnet101_entry() {
  return entry("resnet101", "residual network of 101 layers, bottleneck blocks", {{3, 4, 23, 3}, true});
}

ModelEntry resnet152_entry() {
  return entry("resnet152", "residual network of 152 layers, bottleneck blocks", {{3, 8, 36, 3}, true});
}

ModelEntry wide_resnet50_2_entry() {
  return entry("wide_resnet50_2", "resnet50 whose 3x3 convolutions have twice the channels", {{3, 4, 6, 3}, true, 2});
}

}  // namespace weft::models
