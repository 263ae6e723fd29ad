#include "weft/onnx/lower/expand_functions.h"

#include <array>

#include "weft/base/error.h"

namespace weft::onnx {

namespace {

constexpr int kMostLevels = 64;            // of calls within calls
constexpr int64_t kMostNodes = 1'000'000;  // that a model becomes, calls and what lies in subgraphs among them
constexpr size_t kNameBytes = 256;         // of the names of a node; those with longer ones count as several

class Expander {
 public:
  explicit Expander(const Model& model) {
    for (const Function& function : model.functions)
      functions_[{function.domain, function.name, function.overload}] = &function;
  }

  /// With its nodes' subgraphs.
  OnnxGraph expand(const OnnxGraph& graph, int level) {
    OnnxGraph result = graph;
    result.nodes = expand(graph.nodes, level);
    return result;
  }

 private:
  using Names = std::map<std::string, std::string>;

  std::vector<OnnxNode> expand(const std::vector<OnnxNode>& nodes, int level) {
    if (level > kMostLevels)
      fail(ErrorKind::data, "ONNX: functions of the model call each other {} levels deep, or in a circle", kMostLevels);
    std::vector<OnnxNode> result;
    for (const OnnxNode& node : nodes) {
      count(1);
      const auto found = functions_.find({node.domain, node.op, node.overload});
      if (found == functions_.end()) {
        result.push_back(with_expanded_graphs(node, level));
        continue;
      }
      const auto body = expand(inlined(node, *found->second), level + 1);
      result.insert(result.end(), body.begin(), body.end());
    }
    return result;
  }

  /// Functions that call others several times each make a small file a large model.
  void count(size_t nodes) {
    nodes_ += static_cast<int64_t>(nodes);
    if (!functions_.empty() && nodes_ > kMostNodes)
      fail(ErrorKind::data,
           "ONNX: the functions of the model become more than {} nodes where they are called; export it anew without "
           "functions",
           kMostNodes);
  }

  OnnxNode with_expanded_graphs(OnnxNode node, int level) {
    for (auto& [name, attribute] : node.attributes)
      if (const auto* graph = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value))
        attribute.value = std::make_shared<const OnnxGraph>(expand(**graph, level + 1));
    return node;
  }

  /// The function's nodes with the caller's values and attributes.
  std::vector<OnnxNode> inlined(const OnnxNode& call, const Function& function) {
    Names names;
    for (size_t i = 0; i < function.inputs.size(); ++i)
      names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
    // An output that is an input of the function, too, is copied, so that both names mean something.
    std::vector<OnnxNode> nodes;
    std::vector<std::pair<std::string, std::string>> copies;
    for (size_t i = 0; i < function.outputs.size() && i < call.outputs.size(); ++i) {
      const auto [place, is_new] = names.emplace(function.outputs[i], call.outputs[i]);
      if (!is_new) copies.emplace_back(place->second, call.outputs[i]);
    }
    const std::string prefix = fmt::format("{}_{}/", call.name.empty() ? call.op : call.name, calls_++);
    count(function.nodes.size() * prefix.size() / kNameBytes);
    for (const OnnxNode& node : function.nodes) nodes.push_back(renamed(node, names, prefix, call, function));
    for (const auto& [from, to] : copies) nodes.push_back({to, "Identity", "", "", {from}, {to}, {}});
    return nodes;
  }

  OnnxNode renamed(OnnxNode node, Names& names, const std::string& prefix, const OnnxNode& call,
                   const Function& function) {
    const auto rename = [&](std::string& name) {
      if (!name.empty()) name = names.emplace(name, prefix + name).first->second;
    };
    for (std::string& input : node.inputs) rename(input);
    for (std::string& output : node.outputs) rename(output);
    if (!node.name.empty()) node.name = prefix + node.name;
    for (auto entry = node.attributes.begin(); entry != node.attributes.end();) {
      Attribute& attribute = entry->second;
      if (const auto* graph = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value)) {
        OnnxGraph inner = **graph;
        Names within = names;
        rename_graph(inner, within, prefix, call, function);
        attribute.value = std::make_shared<const OnnxGraph>(std::move(inner));
      }
      if (attribute.refers_to.empty()) {
        ++entry;
        continue;
      }
      const auto given = call.attributes.find(attribute.refers_to);
      const auto fallback = function.attributes.find(attribute.refers_to);
      const bool has_fallback =
          fallback != function.attributes.end() && !std::holds_alternative<std::monostate>(fallback->second.value);
      if (given != call.attributes.end()) {
        attribute = given->second;
        ++entry;
      } else if (has_fallback) {
        attribute = fallback->second;
        ++entry;
      } else {
        entry = node.attributes.erase(entry);
      }
    }
    return node;
  }

  void rename_graph(OnnxGraph& graph, Names& names, const std::string& prefix, const OnnxNode& call,
                    const Function& function) {
    const auto rename = [&](std::string& name) {
      if (!name.empty()) name = names.emplace(name, prefix + name).first->second;
    };
    for (ValueInfo& input : graph.inputs) names[input.name] = prefix + input.name;
    for (ValueInfo& input : graph.inputs) rename(input.name);
    std::map<std::string, HostValue> initializers;
    for (auto& [name, value] : graph.initializers) initializers[names[name] = prefix + name] = std::move(value);
    graph.initializers = std::move(initializers);
    for (OnnxNode& node : graph.nodes) node = renamed(std::move(node), names, prefix, call, function);
    for (ValueInfo& output : graph.outputs) rename(output.name);
    graph.values.clear();
  }

  std::map<std::array<std::string, 3>, const Function*> functions_;
  int64_t calls_ = 0, nodes_ = 0;
};

}  // namespace

Model expand_functions(Model model) {
  Expander expander(model);
  model.graph = expander.expand(model.graph, 0);
  for (const Function& function : model.functions)
    for (const auto& [domain, version] : function.opsets) model.opsets.emplace(domain, version);
  return model;
}

}  // namespace weft::onnx
