#include "weft/onnx/operators/context.h"

#include <array>
#include <cctype>
#include <charconv>

#include "weft/base/error.h"
#include "weft/onnx/file/tensor_format.h"
#include "weft/ops/ops.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

/// The double that somebody wrote who meant this float: 1e-5, not 9.99999974737875e-06.
double as_written(float value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double result = value;
  std::from_chars(text.data(), end, result);
  return result;
}

}  // namespace

void NodeAttributes::fail(const std::string& message) const {
  weft::fail(ErrorKind::usage, "[{}] {}", describe(node_), message);
}

bool NodeAttributes::has_attribute(const std::string& name) const { return node_.attributes.contains(name); }

const Attribute& NodeAttributes::find(const std::string& name) const {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) fail("has no attribute '" + name + "', which it must have");
  if (!found->second.unsupported.empty())
    fail("its attribute '" + name + "' is " + found->second.unsupported + ", which weft has not");
  return found->second;
}

template <typename T>
const T& NodeAttributes::get(const std::string& name, const char* kind) const {
  const T* value = std::get_if<T>(&find(name).value);
  if (value == nullptr) fail("its attribute '" + name + "' must be " + kind);
  return *value;
}

int64_t NodeAttributes::integer(const std::string& name) const { return get<int64_t>(name, "a whole number"); }
int64_t NodeAttributes::integer(const std::string& name, int64_t fallback) const {
  return has_attribute(name) ? integer(name) : fallback;
}
double NodeAttributes::real(const std::string& name, double fallback) const {
  return has_attribute(name) ? as_written(get<float>(name, "a number")) : fallback;
}
std::string NodeAttributes::text(const std::string& name, const std::string& fallback) const {
  return has_attribute(name) ? get<std::string>(name, "a text") : fallback;
}
std::vector<int64_t> NodeAttributes::integers(const std::string& name, const std::vector<int64_t>& fallback) const {
  return has_attribute(name) ? get<std::vector<int64_t>>(name, "a list of whole numbers") : fallback;
}
std::vector<double> NodeAttributes::reals(const std::string& name, const std::vector<double>& fallback) const {
  if (!has_attribute(name)) return fallback;
  const auto& values = get<std::vector<float>>(name, "a list of numbers");
  std::vector<double> result;
  for (const float value : values) result.push_back(as_written(value));
  return result;
}
std::vector<std::string> NodeAttributes::texts(const std::string& name) const {
  return has_attribute(name) ? get<std::vector<std::string>>(name, "a list of texts") : std::vector<std::string>{};
}
const HostValue& NodeAttributes::value_of(const std::string& name) const { return get<HostValue>(name, "a tensor"); }
const OnnxGraph& NodeAttributes::graph_of(const std::string& name) const {
  return *get<std::shared_ptr<const OnnxGraph>>(name, "a graph");
}
const ValueInfo& NodeAttributes::type_of(const std::string& name) const { return get<ValueInfo>(name, "a type"); }
DType NodeAttributes::dtype_of(const std::string& name, DType fallback) const {
  if (!has_attribute(name)) return fallback;
  const auto number = static_cast<int32_t>(integer(name));
  const auto dtype = onnx::dtype_of(number);
  if (!dtype) fail("wants numbers of the type " + name_of_data_type(number) + ", which weft has not");
  return *dtype;
}

const Operand& NodeContext::operand(int input) const {
  if (!has(input)) fail(fmt::format("its input {} is missing", input));
  return operands_[static_cast<size_t>(input)];
}

ValueId NodeContext::value(int input) {
  operand(input);
  Operand& found = operands_[static_cast<size_t>(input)];
  if (found.id.valid()) return found.id;
  const Tensor* tensor = found.known->tensor();
  if (tensor == nullptr)
    fail(fmt::format("its input {} must be a tensor of numbers, got {}", input, describe(*found.known)));
  found.id = ops::constant_tensor(graph_, Constant(*tensor), graph_name(node().inputs[static_cast<size_t>(input)]));
  return found.id;
}

TensorType NodeContext::type(int input) {
  const Operand& found = operand(input);
  if (found.id.valid()) return graph_.type(found.id);
  if (const Tensor* tensor = found.known->tensor()) return tensor->type();
  fail(fmt::format("its input {} must be a tensor of numbers, got {}", input, describe(*found.known)));
}

const Tensor* NodeContext::find_known(int input) const {
  const Operand& found = operand(input);
  return found.known ? found.known->tensor() : nullptr;
}

const Tensor& NodeContext::known(int input) const {
  const Tensor* tensor = find_known(input);
  if (tensor == nullptr) throw NeedsValue{node().inputs[static_cast<size_t>(input)]};
  return *tensor;
}

std::vector<int64_t> NodeContext::known_integers(int input) const { return integers_of(known(input)); }

int64_t NodeContext::known_integer(int input) const {
  const auto values = known_integers(input);
  if (values.size() != 1) fail(fmt::format("its input {} must be one number, got {} of them", input, values.size()));
  return values[0];
}

std::vector<double> NodeContext::known_reals(int input) const { return reals_of(known(input)); }

double NodeContext::known_real(int input) const {
  const auto values = known_reals(input);
  if (values.size() != 1) fail(fmt::format("its input {} must be one number, got {} of them", input, values.size()));
  return values[0];
}

bool NodeContext::is_frozen(int input) {
  const ValueId id = value(input);
  for (const GraphInput& each : graph_.inputs())
    if (each.value == id && each.kind == InputKind::parameter) return is_frozen_ && is_frozen_(each.name);
  return true;  // a constant
}

std::string NodeContext::hint() const {
  for (const std::string& output : node().outputs)
    if (!output.empty()) return graph_name(output);
  return graph_name(node().name);
}

const HostValue& HostContext::input(int index) const {
  if (!has(index)) fail(fmt::format("its input {} is missing", index));
  return *inputs_[static_cast<size_t>(index)];
}
const Tensor& HostContext::tensor(int index) const {
  const Tensor* tensor = input(index).tensor();
  if (tensor == nullptr) fail(fmt::format("its input {} must be numbers, got {}", index, describe(input(index))));
  return *tensor;
}
const StringTensor& HostContext::strings(int index) const {
  const StringTensor* strings = input(index).strings();
  if (strings == nullptr) fail(fmt::format("its input {} must be texts, got {}", index, describe(input(index))));
  return *strings;
}
const std::vector<HostValue>& HostContext::sequence(int index) const {
  const auto* sequence = input(index).sequence();
  if (sequence == nullptr) fail(fmt::format("its input {} must be a sequence, got {}", index, describe(input(index))));
  return *sequence;
}
std::vector<int64_t> HostContext::integers_at(int index) const { return integers_of(tensor(index)); }
int64_t HostContext::integer_at(int index) const {
  const auto values = integers_at(index);
  if (values.size() != 1) fail(fmt::format("its input {} must be one number, got {} of them", index, values.size()));
  return values[0];
}

std::vector<int64_t> integers_of(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t index = 0; index < tensor.elements(); ++index)
    values.push_back(load_as<int64_t>(tensor.dtype(), tensor.data(), index));
  return values;
}

std::vector<double> reals_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t index = 0; index < tensor.elements(); ++index)
    values.push_back(load_element(tensor.dtype(), tensor.data(), index));
  return values;
}

Tensor tensor_of(const std::vector<int64_t>& values) {
  Tensor tensor(DType::i64, Shape{static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.data_as<int64_t>());
  return tensor;
}

std::string graph_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' || c == '-';
    result += fits ? c : '_';
  }
  return result;
}

}  // namespace weft::onnx
