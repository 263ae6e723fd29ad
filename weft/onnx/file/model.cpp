#include "weft/onnx/file/model.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::onnx {

namespace {

void collect_free_names(const OnnxGraph& graph, std::set<std::string>& names) {
  std::set<std::string> own;
  for (const ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const auto& [name, value] : graph.initializers) own.insert(name);
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& name : names_read_by(node))
      if (!own.contains(name)) names.insert(name);
    own.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueInfo& output : graph.outputs)
    if (!own.contains(output.name)) names.insert(output.name);
}

}  // namespace

std::set<std::string> names_read_by(const OnnxNode& node) {
  std::set<std::string> names;
  for (const std::string& input : node.inputs)
    if (!input.empty()) names.insert(input);
  for (const auto& [name, attribute] : node.attributes)
    if (const auto* graph = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value))
      collect_free_names(**graph, names);
  return names;
}

std::string describe(const HostValue& value) {
  if (const Tensor* tensor = value.tensor()) return to_string(tensor->type());
  if (const StringTensor* strings = value.strings()) return "strings" + to_string(strings->shape);
  if (const auto* sequence = value.sequence()) return fmt::format("sequence of {}", sequence->size());
  return "absent";
}

std::string describe(const ValueInfo& info) {
  if (!info.unsupported.empty()) return info.unsupported;
  switch (info.kind) {
    case ValueInfo::Kind::unknown:
      return "of unknown type";
    case ValueInfo::Kind::sequence:
      return "sequence";
    case ValueInfo::Kind::optional:
      return "optional";
    case ValueInfo::Kind::strings:
    case ValueInfo::Kind::tensor:
      break;
  }
  std::string text = info.kind == ValueInfo::Kind::strings ? "strings"
                     : info.dtype                          ? std::string(name_of(*info.dtype))
                                                           : "?";
  if (!info.shape) return text + "[...]";
  text += '[';
  for (size_t axis = 0; axis < info.shape->size(); ++axis) {
    const Dimension& dimension = (*info.shape)[axis];
    if (axis > 0) text += ',';
    text += dimension.size ? std::to_string(*dimension.size) : dimension.symbol.empty() ? "?" : dimension.symbol;
  }
  return text + ']';
}

bool fits(const ValueInfo& info, const Shape& shape) {
  if (!info.shape) return true;
  if (shape.rank() != static_cast<int>(info.shape->size())) return false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Dimension& dimension = (*info.shape)[static_cast<size_t>(axis)];
    if (dimension.size && *dimension.size != shape[axis]) return false;
  }
  return true;
}

OnnxNode node_with_output(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
  OnnxNode node;
  node.name = output;
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  return node;
}

std::string describe(const OnnxNode& node) {
  std::string name = node.name;
  for (size_t index = 0; name.empty() && index < node.outputs.size(); ++index) name = node.outputs[index];
  const std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
  return op + " '" + name + "'";
}

std::vector<std::string> open_dimensions(const OnnxGraph& graph) {
  std::vector<std::string> names;
  for (const ValueInfo& info : graph.inputs) {
    if (!info.shape || graph.initializers.contains(info.name)) continue;
    for (const Dimension& dimension : *info.shape)
      if (!dimension.size && !dimension.symbol.empty() &&
          std::find(names.begin(), names.end(), dimension.symbol) == names.end())
        names.push_back(dimension.symbol);
  }
  return names;
}

int64_t Model::opset() const {
  const auto found = opsets.find("");
  if (found == opsets.end())
    fail(ErrorKind::data, "'{}' does not say which version of ONNX's operators it uses; export it again", path);
  return found->second;
}

}  // namespace weft::onnx
