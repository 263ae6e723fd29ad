// A model: the graph from inputs to logits, with the parameters it declares and how each starts.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/tensor/tensor.h"

namespace weft::models {

enum class Mode { training, inference };

/// How a parameter or state starts; drawn from (seed, name) only, but for `whitening`.
struct Initializer {
  enum class Kind {
    zeros,
    ones,
    uniform,
    normal,
    // Of a weight [O,C,KH,KW]: filter o < C passes channel o on as it is, the others are uniform (torch.nn.init.dirac_
    // of the first filters).
    identity,
    // Of a weight [O,C,KH,KW] that reads the images: with v and l the eigenvectors and eigenvalues of the second
    // moments of the patches of the training images, the largest first, filter o < O/2 is v[o] / sqrt(l[o] + scale),
    // filter O/2 + o its negative. Training computes it (run/whitening.h).
    whitening,
  } kind = Kind::zeros;
  double scale = 0;  // uniform, identity: [-scale, scale); normal: standard deviation; whitening: see there
};

struct ParameterSpec {
  std::string name;  // as in PyTorch: "layer1.0.conv1.weight"
  Shape shape;
  Initializer initializer;
  bool trainable = true;
  bool decay = true;  // false for bias and norm: no weight decay
  Tensor start = {};  // plain: its numbers; empty: the initializer draws them
  // Of the first dimension, where ranks split it: equal blocks, each of which is split by itself, as the queries, keys
  // and values of one layer, and elements that stay together, as those of a head.
  int64_t blocks = 1, unit = 1;
};

/// What the model is built for.
struct ModelInput {
  int64_t batch = 1;
  std::vector<int64_t> shape;  // per sample: {C,H,W} for images, {T} for token sequences
  int64_t classes = 10;        // or the vocabulary, or how many values are predicted
  DType target = DType::i32;   // of "labels": i32 classes or tokens, f32 real values
  // What the data decide; 0: the model's own options do.
  int64_t vocabulary = 0;    // of the tokens read, where `classes` counts something else
  int64_t source = 0;        // of {T} tokens the first, which are translated into the others
  int64_t text_length = 0;   // labels of an image of text
  bool has_ignored = false;  // labels of -100 do not count
  std::string task = {};     // what is learned, by the name of its entry (library/task.h); empty: as `target` says
  // Of a model that generates: it reads so many tokens at a time, and keeps what it needs of those before in states of
  // its own, for up to shape[0] tokens. 0: it reads all of them at once.
  int64_t new_tokens = 0;
  /// Of training: so many ranks, each with a batch of its own, divide the experts of each layer among them.
  int64_t expert_ranks = 1;
  /// Of training: whether a parameter stays as it is. A batch normalisation all of whose parameters do keeps its
  /// statistics too, and normalises by them as in inference. Empty: none does.
  std::function<bool(const std::string& name)> is_frozen = {};
};

/// Options by name from the recipe or --set model.KEY=VALUE, such as width, stem, layers.
using ModelOptions = std::map<std::string, std::string>;

struct Model {
  Graph graph;
  ValueId input;  // "image" f32[N,C,H,W], or "tokens" i32[N,T]
  // "labels" i32[N], or i32[N*T] for language models, i32[N*H*W] for a class per pixel, f32[N,classes] for values.
  // Where f32, the logits are to become this value itself, which need be no input.
  ValueId labels;
  ValueId logits;                         // [N,classes], or [N*T,classes], or of the shape of f32 labels
  std::vector<ParameterSpec> parameters;  // trainable and running statistics, in order of declaration
  // Of models with a loss of their own: the loss per sample [N], and how many predictions are right, f32[].
  // Else invalid: the cross-entropy of logits and labels.
  ValueId losses{}, correct{};
  ValueId extra_loss{};  // f32[], added to the mean of the losses in training; invalid: none
};

/// A model by its name.
struct ModelEntry {
  std::string name;
  std::string summary;                    // a line for `weft models`
  std::vector<std::string> options = {};  // "width=16: channels of the first layer"
  ModelInput default_input = {};          // where nothing says what it shall read: `weft models`, `weft bench`
  std::function<Model(const OpRegistry&, const ModelInput&, const ModelOptions&, Mode)> build;
  bool is_made_of_file = {};  // which its options name: there is no model to list without one
  bool generates = false;     // can be built for ModelInput::new_tokens, in inference
};

/// The models that come with weft, in the order of `weft models`.
const std::vector<ModelEntry>& all_models();
/// Error(usage) for an unknown name, with the nearest.
const ModelEntry& find_model(const std::vector<ModelEntry>& models, const std::string& name);
/// Error(usage) with the nearest name for an unknown option; Error(shape) where the input does not fit.
Model build(const OpRegistry& registry, const ModelEntry& entry, const ModelInput& input, const ModelOptions& options,
            Mode mode);
/// One that comes with weft; Error(usage) for an unknown name too.
Model build(const OpRegistry& registry, const std::string& name, const ModelInput& input, const ModelOptions& options,
            Mode mode);
/// Of the convolutions and matrix products, as published tables count them. Of a graph before passes fuse it.
int64_t multiply_adds(const Graph& graph);
/// The starting value of a parameter; of `whitening` that for noise, whose pixels all are alike.
Tensor initialize(const ParameterSpec& parameter, uint64_t seed);

}  // namespace weft::models
