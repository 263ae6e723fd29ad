#include "weft/onnx/file/model.h"

#include "weft/base/error.h"

namespace weft::onnx {

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

int64_t Model::opset() const {
  const auto found = opsets.find("");
  if (found == opsets.end())
    fail(ErrorKind::data, "'{}' does not say which version of ONNX's operators it uses; export it again", path);
  return found->second;
}

}  // namespace weft::onnx
