#include "weft/quantize/raise_version.h"

#include <algorithm>
#include <set>

#include "weft/base/error.h"
#include "weft/quantize/model_graph.h"

namespace weft::quantize {

namespace {

using onnx::OnnxGraph;
using onnx::OnnxNode;

const std::set<std::string> kReductions{"ReduceL1",   "ReduceL2",  "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                                        "ReduceMean", "ReduceMin", "ReduceProd",   "ReduceSumSquare"};

class Raiser {
 public:
  Raiser(const onnx::Model& model, int64_t to) : path_(model.path), from_(model.opset()), to_(to) {}

  void raise(OnnxGraph& graph) {
    for (size_t index = 0; index < graph.nodes.size(); ++index) {
      OnnxNode& node = graph.nodes[index];
      for (auto& [name, attribute] : node.attributes)
        if (const auto* inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value)) {
          OnnxGraph own = **inner;
          raise(own);
          attribute.value = std::make_shared<const OnnxGraph>(std::move(own));
        }
      if (node.domain.empty()) raise(graph, node);
    }
  }

 private:
  /// Whether the version is one of those that the model leaves behind.
  bool passes(int64_t version) const { return from_ < version && version <= to_; }

  void raise(OnnxGraph& graph, OnnxNode& node) const {
    if (passes(16) && node.op == "RoiAlign")
      node.attributes.try_emplace("coordinate_transformation_mode").first->second.value =
          text_of(node, "coordinate_transformation_mode", "output_half_pixel");
    if (passes(18) && kReductions.contains(node.op)) move_axes(graph, node);
    if (passes(18) && node.op == "Split" && node.inputs.size() < 2)
      node.attributes["num_outputs"].value = static_cast<int64_t>(node.outputs.size());
    if (passes(20) && node.op == "GridSample") {
      const std::string mode = text_of(node, "mode", "bilinear");
      node.attributes["mode"].value = mode == "bilinear" ? "linear" : mode == "bicubic" ? std::string("cubic") : mode;
    }
    if ((passes(20) && node.op == "DFT") || (passes(21) && node.op == "GroupNormalization"))
      fail(
          ErrorKind::usage,
          "'{}': [{}] means something else in version {} of the operators, which integers of so few bits want, than in "
          "{}; export the model anew with version {}",
          path_, describe(node), to_, from_, to_);
  }

  static std::string text_of(const OnnxNode& node, const std::string& name, const std::string& fallback) {
    const auto found = node.attributes.find(name);
    const auto* text = found == node.attributes.end() ? nullptr : std::get_if<std::string>(&found->second.value);
    return text == nullptr ? fallback : *text;
  }

  /// From an attribute to an operand.
  static void move_axes(OnnxGraph& graph, OnnxNode& node) {
    const auto found = node.attributes.find("axes");
    if (found == node.attributes.end()) return;
    if (const auto* axes = std::get_if<std::vector<int64_t>>(&found->second.value)) {
      Tensor tensor(DType::i64, Shape{static_cast<int64_t>(axes->size())});
      std::copy(axes->begin(), axes->end(), tensor.data_as<int64_t>());
      const std::string name = fresh_name(graph, node.outputs.at(0) + ".axes");
      graph.initializers[name] = tensor;
      node.inputs.resize(1);
      node.inputs.push_back(name);
    }
    node.attributes.erase(found);
  }

  const std::string path_;
  const int64_t from_, to_;
};

}  // namespace

void raise_version(onnx::Model& model, int64_t version) {
  if (model.opset() >= version) return;
  Raiser(model, version).raise(model.graph);
  model.opsets[""] = version;
}

}  // namespace weft::quantize
