// What model functions are written with: layers that declare their parameters as graph inputs, named and started as
// PyTorch names and starts them.
#pragma once

#include <string>
#include <vector>

#include "weft/models/model.h"
#include "weft/ops/ops.h"

namespace weft::models {

/// How the weight of a layer starts. The bias starts at zero but for the first.
enum class Start {
  fan_in_uniform,         // uniform in +-1/sqrt(fan in), bias too: the default of PyTorch's layers
  fan_in_uniform_weight,  // the same, bias zero
  fan_in_normal,          // normal, deviation sqrt(2 / fan in) (He et al. 2015): densely connected networks
  fan_out_normal,         // normal, deviation sqrt(2 / fan out): torchvision's residual networks
  small_normal,           // normal, deviation 0.02: GPT-2, vision transformers
  tiny_normal,            // normal, deviation 0.01: torchvision's fully connected layers
  identity,               // filter o < C passes channel o on, the others as fan_in_uniform_weight; convolutions only
  whitening,              // from the patches of the training images (Initializer), for the first convolution
};

struct ConvLayer {
  int64_t channels = 0;  // of the output
  int64_t kernel = 3;
  int64_t stride = 1;
  ops::Pair padding{0, 0};
  int64_t groups = 1;
  bool bias = false;
  Start start = Start::fan_in_uniform;
};

/// The transpose of a convolution: it enlarges the image by its stride.
struct ConvTransposeLayer {
  int64_t channels = 0;  // of the output
  int64_t kernel = 3;
  int64_t stride = 1;
  ops::Pair padding{0, 0}, output_padding{0, 0};
  bool bias = false;
};

struct BatchNormLayer {
  double momentum = 0.1, epsilon = 1e-5;  // PyTorch's: the share of each new batch in the running statistics
  bool scale = true;                      // without, normalised values are shifted only
  bool scale_starts_at_zero = false;      // so that at first the layer gives its shift alone
};

struct LinearLayer {
  int64_t width = 0;  // of the output
  bool bias = true;
  Start start = Start::fan_in_uniform;
  int64_t blocks = 1, unit = 1;  // of the output: see ParameterSpec
};

class ModelBuilder {
 public:
  ModelBuilder(const OpRegistry& registry, std::string model, const ModelInput& input, Mode mode);

  Graph& graph() { return model_.graph; }
  const ModelInput& input() const { return input_; }
  /// Below 64 pixels on both sides: stems and heads for photos would leave too little of them.
  bool has_small_images() const;
  const Shape& shape(ValueId x) const { return model_.graph.shape(x); }

  /// The batch inputs "image" f32[N,C,H,W] and "labels" i32[N], or f32[N,classes] for real values. Error(shape) unless
  /// the samples are {C,H,W} with at least `smallest` pixels on each side.
  ValueId image(int64_t smallest);
  /// The same with labels for every pixel, row by row: i32[N*H*W].
  ValueId image_of_labelled_pixels(int64_t smallest);
  /// The same with texts of up to `length` letters: i32[N*length].
  ValueId image_of_text(int64_t smallest, int64_t length);
  /// The batch input "image" of any shape, and "labels" as above.
  ValueId samples();
  /// The batch inputs "tokens" i32[N,T] and "labels" i32[N*T], where T are the new tokens of a model that generates.
  ValueId tokens();
  /// The batch inputs "tokens" i32[N,T] and "labels" i32[N]: one label for the whole sequence.
  ValueId sequence();
  /// The batch inputs "tokens" i32[N,T] and "labels" i32[N*labels].
  ValueId tokens_with(int64_t labels);

  /// NAME.weight [O,C/groups,K,K], NAME.bias [O].
  ValueId conv(ValueId x, const std::string& name, const ConvLayer& layer);
  /// NAME.weight [C,O,K,K], NAME.bias [O].
  ValueId conv_transpose(ValueId x, const std::string& name, const ConvTransposeLayer& layer);
  /// NAME.weight (where it scales), .bias, .running_mean, .running_var. In training the running statistics get updates.
  ValueId batch_norm(ValueId x, const std::string& name, const BatchNormLayer& layer = {});
  /// x [rows,D] -> [rows,width]. NAME.weight [width,D], NAME.bias [width].
  ValueId linear(ValueId x, const std::string& name, const LinearLayer& layer);
  /// NAME.weight, NAME.bias.
  ValueId layer_norm(ValueId x, const std::string& name, double epsilon = 1e-5);
  /// NAME.weight [rows,width].
  ValueId embedding(ValueId indices, const std::string& name, int64_t rows, int64_t width);
  /// x itself in inference or where nothing is dropped; else reads the scalars "seed" and "step".
  ValueId dropout(ValueId x, double probability, const std::string& name);
  /// A parameter of its own.
  ValueId parameter(const std::string& name, const Shape& shape, Initializer initializer, bool decay);
  /// One whose first dimension the ranks along `axis` divide evenly: the value is the part of one of them.
  ValueId parameter(const std::string& name, const Shape& shape, Initializer initializer, bool decay,
                    const MeshAxis& axis);

  /// A state of its own, which starts at zero.
  ValueId state(const std::string& name, const Shape& shape);
  /// The scalar input of whole numbers of this name, i64[].
  ValueId scalar(const std::string& name);

  /// Training minimises this number, f32[], beside the loss.
  void add_loss(ValueId loss);
  /// The target is this value, of the shape of the logits, instead of the labels, which nothing reads then.
  void aim_at(ValueId target) { model_.labels = target; }
  Model finish(ValueId logits);

 private:
  void require_images(int64_t smallest) const;
  ValueId add_channel_bias(ValueId x, const std::string& name, Initializer start);
  ValueId running_statistic(const std::string& name, int64_t channels, Initializer::Kind kind);
  ValueId image_with(int64_t labels);
  [[noreturn]] void reject_input(const std::string& wanted, const std::string& next_step) const;

  Model model_;
  std::string name_;
  ModelInput input_;
  Mode mode_;
  int64_t dropouts_ = 0;
};

}  // namespace weft::models
