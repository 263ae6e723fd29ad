// Sequences and optional values: the host holds them.
#include <algorithm>

#include "weft/onnx/operators/host_tensors.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

using Values = std::vector<HostValue>;

Tensor number(int64_t value, DType dtype) {
  Tensor tensor(dtype, Shape{});
  if (dtype == DType::boolean)
    *tensor.data_as<uint8_t>() = value != 0;
  else
    *tensor.data_as<int64_t>() = value;
  return tensor;
}

/// A position from the front; `end` is the first that is none.
size_t position_of(const HostContext& node, int64_t position, int64_t end) {
  const int64_t resolved = position < 0 ? position + end : position;
  if (resolved < 0 || resolved >= end) node.fail(fmt::format("has the position {} of a sequence of {}", position, end));
  return static_cast<size_t>(resolved);
}

Values run_construct(const HostContext& node) {
  Values values;
  for (int input = 0; input < node.input_count(); ++input) values.push_back(node.input(input));
  return {values};
}

Values run_at(const HostContext& node) {
  const Values& sequence = node.sequence(0);
  return {sequence[position_of(node, node.integer_at(1), static_cast<int64_t>(sequence.size()))]};
}

Values run_insert(const HostContext& node) {
  Values sequence = node.sequence(0);
  const auto size = static_cast<int64_t>(sequence.size());
  int64_t at = node.has(2) ? node.integer_at(2) : size;
  if (at < 0) at += size;
  if (at < 0 || at > size) node.fail(fmt::format("inserts at {} of a sequence of {}", at, size));
  sequence.insert(sequence.begin() + at, node.input(1));
  return {sequence};
}

Values run_erase(const HostContext& node) {
  Values sequence = node.sequence(0);
  const auto size = static_cast<int64_t>(sequence.size());
  const size_t at = position_of(node, node.has(1) ? node.integer_at(1) : -1, size);
  sequence.erase(sequence.begin() + static_cast<std::ptrdiff_t>(at));
  return {sequence};
}

Values run_length(const HostContext& node) {
  return {number(static_cast<int64_t>(node.sequence(0).size()), DType::i64)};
}

Values run_split(const HostContext& node) {
  const Tensor& tensor = node.tensor(0);
  const int64_t rank = tensor.shape().rank();
  int64_t axis = node.integer("axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) node.fail("splits along an axis that its operand has not");
  const int64_t size = tensor.shape()[static_cast<int>(axis)];
  std::vector<int64_t> sizes;
  const bool has_split = node.has(1);
  if (has_split && node.tensor(1).shape().rank() > 0) {
    sizes = node.integers_at(1);
  } else {
    const int64_t part = has_split ? node.integer_at(1) : 1;
    if (part < 1) node.fail(fmt::format("splits into parts of {}", part));
    for (int64_t done = 0; done < size; done += part) sizes.push_back(std::min(part, size - done));
  }
  const bool keeps = has_split || node.integer("keepdims", 1) != 0;
  Values parts;
  int64_t start = 0;
  for (const int64_t each : sizes) {
    if (each < 0 || start + each > size) node.fail("splits into more than there is");
    parts.emplace_back(keeps ? range_of(tensor, static_cast<int>(axis), start, start + each)
                             : layer_of(tensor, static_cast<int>(axis), start));
    start += each;
  }
  return {parts};
}

Values run_concat(const HostContext& node) {
  std::vector<Tensor> parts;
  for (const HostValue& value : node.sequence(0)) {
    if (value.tensor() == nullptr) node.fail("joins what is no tensor");
    parts.push_back(*value.tensor());
  }
  if (parts.empty()) node.fail("joins nothing");
  if (node.integer("new_axis", 0) != 0) return {stacked(node, parts, node.integer("axis"), false, {})};
  return {joined(node, parts, node.integer("axis"))};
}

Values run_map(const HostContext& node) {
  const OnnxGraph& body = node.graph_of("body");
  const size_t count = node.sequence(0).size();
  std::vector<Values> results(static_cast<size_t>(node.output_count()));
  for (size_t index = 0; index < count; ++index) {
    Values inputs;
    for (int input = 0; input < node.input_count(); ++input) {
      const auto* sequence = node.input(input).sequence();
      if (sequence != nullptr && index >= sequence->size()) node.fail("maps sequences of different lengths");
      inputs.push_back(sequence != nullptr ? (*sequence)[index] : node.input(input));
    }
    const Values outputs = node.run(body, inputs);
    for (size_t output = 0; output < results.size() && output < outputs.size(); ++output)
      results[output].push_back(outputs[output]);
  }
  return {results.begin(), results.end()};
}

Values run_optional(const HostContext& node) { return {node.has(0) ? node.input(0) : HostValue{}}; }

Values run_has_element(const HostContext& node) {
  return {number(node.has(0) && !node.input(0).is_absent(), DType::boolean)};
}

Values run_get_element(const HostContext& node) {
  if (node.input(0).is_absent()) node.fail("asks for a value that is absent");
  return {node.input(0)};
}

}  // namespace

void add_sequences(OperatorTable& table) {
  const std::string family = "sequence";
  table.add_on_host(family, "SequenceConstruct", run_construct);
  table.add_on_host(family, "SequenceEmpty", [](const HostContext&) { return Values{Values{}}; });
  table.add_on_host(family, "SequenceAt", run_at);
  table.add_on_host(family, "SequenceInsert", run_insert);
  table.add_on_host(family, "SequenceErase", run_erase);
  table.add_on_host(family, "SequenceLength", run_length);
  table.add_on_host(family, "SequenceMap", run_map);
  table.add_on_host(family, "SplitToSequence", run_split);
  table.add_on_host(family, "ConcatFromSequence", run_concat);
  table.add_on_host(family, "Optional", run_optional);
  table.add_on_host(family, "OptionalHasElement", run_has_element);
  table.add_on_host(family, "OptionalGetElement", run_get_element);
}

}  // namespace weft::onnx
