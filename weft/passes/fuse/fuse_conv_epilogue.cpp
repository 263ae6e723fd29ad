#include "weft/passes/fuse/fuse_conv_epilogue.h"

#include <optional>
#include <string>
#include <unordered_map>

#include "weft/graph/constant_node.h"
#include "weft/graph/granted_workspace.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// A convolution with what follows it, up to and including `last`.
struct Epilogue {
  NodeId convolution, last;
  NodeId sum;        // invalid: nothing is added
  ValueId residual;  // the same
  std::string activation = "none";
};

/// What fused_conv2d calls the activation; empty: none that it has.
std::string epilogue_of(const Node& node) {
  if (node.op->name == "relu") return "relu";
  const bool is_relu6 =
      node.op->name == "clip" && node.attributes.real("low") == 0 && node.attributes.real("high") == 6;
  return is_relu6 ? "relu6" : "";
}

class EpilogueFuser {
 public:
  EpilogueFuser(const Graph& graph, const Backend& backend)
      : graph_(graph),
        backend_(backend),
        users_(find_users(graph)),
        is_result_(find_results(graph)),
        is_joined_(graph.nodes().size(), false) {}

  Graph run() {
    std::unordered_map<int32_t, Epilogue> by_last;
    // From the last node on: an activation is found before the sum that it reads.
    for (size_t index = graph_.nodes().size(); index-- > 0;) {
      if (is_joined_[index]) continue;
      const auto epilogue = find(node_at(index));
      if (!epilogue || !is_served(*epilogue)) continue;
      for (const NodeId part : {epilogue->convolution, epilogue->sum, epilogue->last})
        if (part.valid()) is_joined_[index_of(part)] = true;
      by_last.emplace(static_cast<int32_t>(index), *epilogue);
    }
    if (by_last.empty()) return graph_;
    Rewriter rewriter(graph_);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (const auto found = by_last.find(static_cast<int32_t>(index)); found != by_last.end())
        emit(rewriter, found->second);
      else if (!is_joined_[index])
        rewriter.copy(node_at(index));
    }
    return rewriter.finish();
  }

 private:
  bool is_read_once(ValueId value) const { return users_[index_of(value)].size() == 1 && !is_result_[index_of(value)]; }

  /// The convolution by constant weights that made the value for one reader only; invalid where it is none.
  NodeId convolution_of(ValueId value) const {
    const Node* node = graph_.producer(value);
    if (node == nullptr || node->op->name != "conv2d" || !is_read_once(value)) return {};
    const NodeId id = graph_.value(value).producer;
    return is_joined_[index_of(id)] || !is_of_constants(node->inputs[1]) ? NodeId{} : id;
  }

  /// A constant, or a cast of one: casts are folded later.
  bool is_of_constants(ValueId value) const {
    const Node* node = graph_.producer(value);
    if (node != nullptr && node->op->name == "cast") return is_of_constants(node->inputs[0]);
    return node != nullptr && is_constant_tensor(*node);
  }

  std::optional<Epilogue> find(NodeId last) const {
    const Node& node = graph_.node(last);
    if (node.op->name == "add") return find_sum(last, last, "none");
    const std::string activation = epilogue_of(node);
    if (activation.empty()) return std::nullopt;
    const ValueId activated = node.inputs[0];
    if (const NodeId convolution = convolution_of(activated); convolution.valid())
      return Epilogue{convolution, last, {}, {}, activation};
    const Node* sum = graph_.producer(activated);
    if (sum == nullptr || sum->op->name != "add" || !is_read_once(activated)) return std::nullopt;
    const NodeId id = graph_.value(activated).producer;
    return is_joined_[index_of(id)] ? std::nullopt : find_sum(id, last, activation);
  }

  std::optional<Epilogue> find_sum(NodeId id, NodeId last, const std::string& activation) const {
    const Node& sum = graph_.node(id);
    const ValueId a = sum.inputs[0], b = sum.inputs[1];
    if (graph_.type(a) != graph_.type(b)) return std::nullopt;
    const NodeId of_a = convolution_of(a), of_b = convolution_of(b);
    const bool takes_a = of_a.valid() && of_a > of_b;
    const NodeId convolution = takes_a ? of_a : of_b;
    if (!convolution.valid()) return std::nullopt;
    return Epilogue{convolution, last, id, takes_a ? b : a, activation};
  }

  /// As it would stand in the graph, without its bias where it has none.
  NodeSignature signature_with(const Epilogue& epilogue) const {
    const Node& convolution = graph_.node(epilogue.convolution);
    NodeSignature signature = signature_of(graph_, epilogue.convolution);
    signature.op = &graph_.registry().get("fused_conv2d");
    signature.attributes.set(kGrantedWorkspace, int64_t{0});
    signature.attributes.set("activation", epilogue.activation);
    if (convolution.inputs.size() < 3)
      signature.inputs.push_back({DType::f32, Shape{graph_.shape(convolution.outputs[0])[1]}, {}});
    if (epilogue.residual.valid()) signature.inputs.push_back(graph_.type(epilogue.residual));
    return signature;
  }

  /// The kernel that the device would give the convolution, in the layouts that it wants.
  std::string kernel_of(NodeSignature signature) const {
    if (const auto choice = backend_.preferred_layouts(signature)) {
      for (size_t input = 0; input < signature.inputs.size(); ++input)
        signature.inputs[input].layout = choice->inputs[input];
      signature.outputs[0].layout = choice->outputs[0];
    }
    return backend_.choose_kernel(signature).kernel;
  }

  bool uses_granted_workspace(NodeId convolution) const {
    const NodeSignature granted = signature_of(graph_, convolution);
    if (granted_workspace(granted.attributes) == 0) return false;
    NodeSignature plain = granted;
    plain.attributes.set(kGrantedWorkspace, int64_t{0});
    return kernel_of(granted) != kernel_of(plain);
  }

  bool is_served(const Epilogue& epilogue) const {
    return backend_.preferred_layouts(signature_with(epilogue)).has_value() &&
           !uses_granted_workspace(epilogue.convolution);
  }

  void emit(Rewriter& rewriter, const Epilogue& epilogue) const {
    const Node& convolution = graph_.node(epilogue.convolution);
    const std::string& name = graph_.node_name(epilogue.convolution);
    std::vector<ValueId> operands = rewriter.map(convolution.inputs);
    if (operands.size() < 3) {
      const int64_t channels = graph_.shape(convolution.outputs[0])[1];
      operands.push_back(add_constant(rewriter.result(), {DType::f32, Shape{channels}, {}}, 0, name + ".zero_bias"));
    }
    if (epilogue.residual.valid()) operands.push_back(rewriter.map(epilogue.residual));
    Attributes attributes = convolution.attributes;
    attributes.erase(kGrantedWorkspace);
    attributes.set("activation", epilogue.activation);
    rewriter.replace(graph_.node(epilogue.last).outputs[0],
                     rewriter.result().add("fused_conv2d", operands, attributes, name));
  }

  const Graph& graph_;
  const Backend& backend_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
  std::vector<bool> is_joined_;
};

}  // namespace

Graph fuse_conv_epilogue(const Graph& graph, const Backend& backend) { return EpilogueFuser(graph, backend).run(); }

}  // namespace weft::passes
