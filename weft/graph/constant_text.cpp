#include "weft/graph/constant_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include "weft/base/error.h"
#include "weft/graph/constant_node.h"
#include "weft/tensor/element.h"
#include "weft/tensor/safetensors.h"

namespace weft {

namespace {

constexpr std::string_view kHashMark = "hash=";

std::string print_element(const Tensor& tensor, int64_t index) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::f64) return fmt::format("{}", tensor.data_as<double>()[index]);
  return visit_number(dtype, [&](auto zero) {
    const auto value = load_as<decltype(zero)>(dtype, tensor.data(), index);
    if constexpr (std::is_same_v<decltype(zero), double>) return fmt::format("{}", static_cast<float>(value));
    return fmt::format("{}", value);
  });
}

template <typename T>
T parse_number(std::string_view text, const TensorType& type) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size())
    fail(ErrorKind::data, "'{}' is no element of a constant {}", text, to_string(type));
  return value;
}

/// Writes it where it is one of the dtype exactly.
template <typename T>
void parse_element(std::string_view text, Tensor& tensor, int64_t index) {
  const auto value = parse_number<T>(text, tensor.type());
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  store_number(tensor.dtype(), tensor.data(), index, static_cast<Wide>(value));
  const auto stored = load_as<Wide>(tensor.dtype(), tensor.data(), index);
  if (stored != static_cast<Wide>(value) && !(std::is_floating_point_v<T> && value != value))
    fail(ErrorKind::data, "'{}' is more than an element of a constant {} holds", text, to_string(tensor.type()));
}

Tensor parse_elements(const TensorType& type, std::string_view elements) {
  const auto bad = [&] {
    fail(ErrorKind::data, "a constant {} has {} elements, not those in '{}'", to_string(type), type.elements(),
         elements);
  };
  if (type.elements() > kMostElementsInText || !type.layout.is_plain())
    fail(ErrorKind::data, "a constant {} does not stand in the text: give its hash", to_string(type));
  Tensor tensor(type);
  std::string_view rest = elements;
  for (int64_t index = 0; index < type.elements(); ++index) {
    if (rest.empty()) bad();
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (type.dtype == DType::f64)
      parse_element<double>(word, tensor, index);
    else if (is_floating(type.dtype))
      parse_element<float>(word, tensor, index);
    else if (is_signed(type.dtype))
      parse_element<int64_t>(word, tensor, index);
    else
      parse_element<uint64_t>(word, tensor, index);
  }
  if (!rest.empty()) bad();
  return tensor;
}

/// All its elements, "1,2,3"; nullopt where there are too many, or one that numbers do not spell: a NaN of its own
/// bits.
std::optional<std::string> spell_elements(const Constant& constant) {
  const Tensor& tensor = constant->tensor();
  if (tensor.elements() > kMostElementsInText || !tensor.layout().is_plain()) return std::nullopt;
  std::string elements;
  for (int64_t index = 0; index < tensor.elements(); ++index) {
    if (is_floating(tensor.dtype()) && std::isnan(load_element(tensor.dtype(), tensor.data(), index)))
      return std::nullopt;
    elements += (index == 0 ? "" : ",") + print_element(tensor, index);
  }
  return elements;
}

}  // namespace

std::string print_constant(const Constant& constant) {
  if (!constant) return "<>";
  const auto elements = spell_elements(constant);
  if (!elements) return to_string(AttributeValue(constant));
  return fmt::format("<{}{}{}>", to_string(constant->type()), elements->empty() ? "" : " ", *elements);
}

Constant parse_constant(std::string_view text, const ConstantTable& constants) {
  if (text.size() < 2 || text.front() != '<' || text.back() != '>')
    fail(ErrorKind::data, "'{}' is no constant; write <f32[2] 1,2>", text);
  const std::string_view inside = text.substr(1, text.size() - 2);
  const size_t space = std::min(inside.find(' '), inside.size());
  const TensorType type = parse_tensor_type(inside.substr(0, space));
  const std::string_view content = inside.substr(std::min(space + 1, inside.size()));
  if (!content.starts_with(kHashMark)) return Constant(parse_elements(type, content));
  const std::string hash(content.substr(kHashMark.size()));
  const auto found = constants.find(hash);
  if (found == constants.end())
    fail(
        ErrorKind::usage,
        "the data of the constant {} are not in the text; give the file of constants that belongs to it (it is to have "
        "the tensor {})",
        text, hash);
  if (found->second->type() != type)
    fail(ErrorKind::data, "the constant {} is {} in the file of constants", text, to_string(found->second->type()));
  return found->second;
}

std::filesystem::path constants_path(const std::filesystem::path& graph_file) {
  return graph_file.string() + ".constants";
}

ConstantTable find_constants(const Graph& graph) {
  ConstantTable table;
  for (const Node& node : graph.nodes())
    for (const auto& [name, value] : node.attributes.values())
      if (const auto* constant = std::get_if<Constant>(&value); constant != nullptr && *constant)
        if (!spell_elements(*constant)) table.emplace(to_string((*constant)->hash()), *constant);
  return table;
}

void write_constants(const std::filesystem::path& path, const ConstantTable& constants) {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> types;
  for (const auto& [hash, constant] : constants) {
    entries.push_back({hash, {DType::u8, {constant->type().bytes()}, {}}});
    types.emplace(hash, to_string(constant->type()));
  }
  AtomicFile out(path);
  write_safetensors(out, entries, types, [&](const std::string& hash) {
    const Tensor& tensor = constants.at(hash)->tensor();
    return tensor.reinterpreted({DType::u8, {tensor.bytes()}, {}});
  });
  out.commit();
}

ConstantTable read_constants(const std::filesystem::path& path) {
  SafetensorsFile file = read_safetensors(path);
  ConstantTable table;
  for (auto& [hash, bytes] : file.tensors) {
    const auto spelled = file.metadata.find(hash);
    if (spelled == file.metadata.end())
      fail(ErrorKind::data, "'{}' is no file of constants: its metadata have no type for '{}'", path.string(), hash);
    const TensorType type = parse_tensor_type(spelled->second);
    if (bytes.dtype() != DType::u8 || bytes.bytes() != type.bytes())
      fail(ErrorKind::data, "'{}': the constant {} is not the {} bytes of {}", path.string(), hash, type.bytes(),
           spelled->second);
    const Constant constant(bytes.reinterpreted(type));
    if (to_string(constant->hash()) != hash)
      fail(ErrorKind::data, "'{}': the constant {} has other content; copy the file again", path.string(), hash);
    table.emplace(hash, constant);
  }
  return table;
}

}  // namespace weft
