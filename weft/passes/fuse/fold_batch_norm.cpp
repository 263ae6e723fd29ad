#include "weft/passes/fuse/fold_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "weft/graph/constant_node.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// The numbers of a constant in f32, plain; nullopt where the value is none. A fill of one number is a constant too.
std::optional<std::vector<double>> numbers_of(const Graph& graph, ValueId value) {
  const Node* node = graph.producer(value);
  const TensorType& type = graph.type(value);
  if (node == nullptr || type.dtype != DType::f32 || !type.layout.is_plain()) return std::nullopt;
  const auto count = static_cast<size_t>(type.elements());
  if (node->op->name == "constant") return std::vector<double>(count, node->attributes.real("value"));
  if (!is_constant_tensor(*node)) return std::nullopt;
  const float* data = constant_of(*node)->tensor().data_as<float>();
  return std::vector<double>(data, data + count);
}

/// A convolution with the batch normalisation that is to become part of it.
struct Fold {
  NodeId convolution;
  std::vector<double> factor, shift;  // of each output channel
};

class BatchNormFolder {
 public:
  BatchNormFolder(const Graph& graph, FoldedWeights* known)
      : graph_(graph), known_(known), rewriter_(graph), users_(find_users(graph)), is_result_(find_results(graph)) {}

  Graph run() {
    const size_t count = graph_.nodes().size();
    std::vector<std::optional<Fold>> folds(count);
    std::vector<bool> joined(count, false);
    for (size_t index = 0; index < count; ++index) {
      folds[index] = find(node_at(index));
      if (folds[index]) joined[index_of(folds[index]->convolution)] = true;
    }
    for (size_t index = 0; index < count; ++index) {
      if (folds[index])
        emit(node_at(index), *folds[index]);
      else if (!joined[index])
        rewriter_.copy(node_at(index));
    }
    return rewriter_.finish();
  }

 private:
  /// The convolution that only this node reads and whose weights are a constant in f32; invalid where it is none.
  NodeId foldable_convolution(const Node& norm) const {
    const ValueId convolved = norm.inputs[0];
    const Node* convolution = graph_.producer(convolved);
    if (convolution == nullptr || convolution->op->name != "conv2d") return {};
    if (users_[index_of(convolved)].size() != 1 || is_result_[index_of(convolved)]) return {};
    const Node* weights = graph_.producer(convolution->inputs[1]);
    const TensorType& type = graph_.type(convolution->inputs[1]);
    const bool is_plain_f32 = type.dtype == DType::f32 && type.layout.is_plain();
    return weights != nullptr && is_constant_tensor(*weights) && is_plain_f32 ? graph_.value(convolved).producer
                                                                              : NodeId{};
  }

  std::optional<Fold> find(NodeId id) const {
    const Node& norm = graph_.node(id);
    if (norm.op->name != "batch_norm_inference" || norm.inputs.size() != 5) return std::nullopt;
    if (norm.attributes.text("activation") != "none") return std::nullopt;
    Fold fold{foldable_convolution(norm), {}, {}};
    if (!fold.convolution.valid()) return std::nullopt;
    const auto scale = numbers_of(graph_, norm.inputs[1]), shift = numbers_of(graph_, norm.inputs[2]),
               mean = numbers_of(graph_, norm.inputs[3]), variance = numbers_of(graph_, norm.inputs[4]);
    if (!scale || !shift || !mean || !variance) return std::nullopt;
    std::vector<double> bias(scale->size(), 0.0);
    const Node& convolution = graph_.node(fold.convolution);
    if (convolution.inputs.size() > 2) {
      const auto own = numbers_of(graph_, convolution.inputs[2]);
      if (!own) return std::nullopt;
      bias = *own;
    }
    const double epsilon = norm.attributes.real("epsilon");
    for (size_t channel = 0; channel < scale->size(); ++channel) {
      const double factor = (*scale)[channel] / std::sqrt((*variance)[channel] + epsilon);
      fold.factor.push_back(factor);
      fold.shift.push_back((*shift)[channel] + (bias[channel] - (*mean)[channel]) * factor);
    }
    return fold;
  }

  ValueId add_constant(const Constant& constant, const std::string& name) {
    return rewriter_.result().add(kConstantTensor, {}, {{kConstantData, constant}}, name);
  }

  static Constant scaled(const Tensor& weights, const std::vector<double>& factors) {
    Tensor scaled(weights.type());
    const auto channels = static_cast<int64_t>(factors.size());
    const int64_t each = weights.elements() / channels;
    for (int64_t channel = 0; channel < channels; ++channel) {
      const double factor = factors[static_cast<size_t>(channel)];
      const float* from = weights.data_as<float>() + channel * each;
      float* to = scaled.data_as<float>() + channel * each;
      for (int64_t at = 0; at < each; ++at) to[at] = static_cast<float>(static_cast<double>(from[at]) * factor);
    }
    return Constant(std::move(scaled));
  }

  Constant folded_weights(const Constant& weights, const std::vector<double>& factors) const {
    if (known_ == nullptr) return scaled(weights->tensor(), factors);
    const Hash128& own = weights->hash();
    Constant& folded = (*known_)[hash128(std::as_bytes(std::span(factors)), own.high ^ own.low)];
    if (!folded) folded = scaled(weights->tensor(), factors);
    return folded;
  }

  /// Stands where the batch normalisation stood.
  void emit(NodeId id, const Fold& fold) {
    const Node &norm = graph_.node(id), &convolution = graph_.node(fold.convolution);
    const std::string& name = graph_.node_name(fold.convolution);
    const Constant& weights = constant_of(*graph_.producer(convolution.inputs[1]));
    Tensor bias(DType::f32, Shape{static_cast<int64_t>(fold.shift.size())});
    std::transform(fold.shift.begin(), fold.shift.end(), bias.data_as<float>(),
                   [](double shift) { return static_cast<float>(shift); });
    const ValueId new_weights = add_constant(folded_weights(weights, fold.factor), name + ".folded_weight");
    const ValueId new_bias = add_constant(Constant(std::move(bias)), name + ".folded_bias");
    rewriter_.replace(norm.outputs[0],
                      rewriter_.result().add("conv2d", {rewriter_.map(convolution.inputs[0]), new_weights, new_bias},
                                             convolution.attributes, name));
  }

  const Graph& graph_;
  FoldedWeights* const known_;
  Rewriter rewriter_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
};

}  // namespace

Graph fold_batch_norm(const Graph& graph, FoldedWeights* known) {
  const bool has_norms = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                     [](const Node& node) { return node.op->name == "batch_norm_inference"; });
  return has_norms ? BatchNormFolder(graph, known).run() : graph;
}

}  // namespace weft::passes
