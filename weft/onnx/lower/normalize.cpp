#include "weft/onnx/lower/normalize.h"

#include <algorithm>
#include <set>

#include "weft/base/error.h"
#include "weft/onnx/lower/expand_contributed.h"
#include "weft/onnx/lower/expand_functions.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

void check_version(const std::string& path, const std::map<std::string, int64_t>& opsets) {
  const auto found = opsets.find("");
  if (found != opsets.end() && found->second > kNewestOpset)
    fail(ErrorKind::usage,
         "'{}' has operators of version {}, and weft knows those up to {}; export it with version {} or older", path,
         found->second, kNewestOpset, kNewestOpset);
}

void check_inputs(const Model& model) {
  for (const ValueInfo& info : model.graph.inputs)
    if (!info.unsupported.empty() && !model.graph.initializers.contains(info.name))
      fail(ErrorKind::usage, "'{}': the input '{}' is {}, a type that weft has not; export the model with another",
           model.path, info.name, info.unsupported);
}

/// A later node would silently take the place of an earlier one.
void check_writers(const std::string& path, const OnnxGraph& graph) {
  std::map<std::string, const OnnxNode*> writers;
  for (const ValueInfo& input : graph.inputs) writers[input.name] = nullptr;
  for (const auto& [name, value] : graph.initializers) writers[name] = nullptr;
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& output : node.outputs) {
      if (output.empty()) continue;
      const auto [first, is_new] = writers.emplace(output, &node);
      if (!is_new)
        fail(ErrorKind::data, "'{}': [{}] writes '{}', which {} already; the file is damaged, export it again", path,
             describe(node), output,
             first->second == nullptr ? "is an input or a tensor of the file"
                                      : "[" + describe(*first->second) + "] writes");
    }
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value))
        check_writers(path, **inner);
  }
}

void hoist_constants(OnnxGraph& graph) {
  const OperatorTable operators = standard_operators();
  const Operator& constant = *operators.find("", "Constant");
  std::erase_if(graph.nodes, [&](const OnnxNode& node) {
    if (node.op != "Constant" || !node.domain.empty() || node.outputs.size() != 1 || node.outputs[0].empty())
      return false;
    graph.initializers[node.outputs[0]] = constant.run(HostContext(node, kNewestOpset, {}, {})).at(0);
    return true;
  });
}

}  // namespace

void skip_identities(OnnxGraph& graph) {
  std::map<std::string, std::string> same;  // what an Identity of an initializer gives, with the initializer
  for (OnnxNode& node : graph.nodes) {
    for (std::string& input : node.inputs)
      if (const auto found = same.find(input); !input.empty() && found != same.end()) input = found->second;
    if (node.op == "Identity" && node.domain.empty() && node.inputs.size() == 1 && node.outputs.size() == 1 &&
        !node.outputs[0].empty() && graph.initializers.contains(node.inputs[0]))
      same[node.outputs[0]] = node.inputs[0];
  }
  if (same.empty()) return;
  // Subgraphs and outputs of the model keep the name.
  std::set<std::string> read;
  for (const ValueInfo& output : graph.outputs) read.insert(output.name);
  for (const OnnxNode& node : graph.nodes) read.merge(names_read_by(node));
  std::erase_if(graph.nodes, [&](const OnnxNode& node) {
    return node.outputs.size() == 1 && same.contains(node.outputs[0]) && !read.contains(node.outputs[0]);
  });
}

Model normalize(Model model) {
  check_version(model.path, model.opsets);
  for (const Function& function : model.functions) check_version(model.path, function.opsets);
  check_inputs(model);
  model = expand_contributed(expand_functions(std::move(model)));
  model.functions.clear();
  check_writers(model.path, model.graph);
  hoist_constants(model.graph);
  skip_identities(model.graph);
  return model;
}

}  // namespace weft::onnx
