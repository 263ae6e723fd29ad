#include "weft/tensor/npy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/tensor/element.h"

namespace weft {

namespace {

struct TypeRow {
  std::string_view kind;  // of NumPy, without the order of bytes
  DType dtype;
};
constexpr std::array<TypeRow, 12> kTypes{{{"f4", DType::f32},
                                          {"f8", DType::f64},
                                          {"f2", DType::f16},
                                          {"i8", DType::i64},
                                          {"i4", DType::i32},
                                          {"i2", DType::i16},
                                          {"i1", DType::i8},
                                          {"u1", DType::u8},
                                          {"u2", DType::u16},
                                          {"u4", DType::u32},
                                          {"u8", DType::u64},
                                          {"b1", DType::boolean}}};

struct Header {
  std::string kind;
  bool is_big_endian = false, columns_first = false;
  std::vector<int64_t> shape;
  size_t data = 0;  // where they begin
};

/// The text behind "'key':", up to the comma or the end of the parentheses.
std::optional<std::string_view> value_of(std::string_view text, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "'";
  const size_t at = text.find(quoted);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t colon = text.find(':', at + quoted.size());
  if (colon == std::string_view::npos) return std::nullopt;
  const size_t begin = text.find_first_not_of(' ', colon + 1);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = text[begin] == '(' ? text.find(')', begin) : text.find_first_of(",}", begin);
  if (end == std::string_view::npos) return std::nullopt;
  return text.substr(begin, end - begin + (text[begin] == '(' ? 1 : 0));
}

std::optional<std::vector<int64_t>> parse_shape(std::string_view text) {
  std::vector<int64_t> shape;
  int64_t number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = (number < 0 ? 0 : number) * 10 + (c - '0');
      if (number > kMostElements) return std::nullopt;
    } else if (c == ',' || c == ')') {
      if (number >= 0) shape.push_back(number);
      number = -1;
    } else if (c != '(' && c != ' ' && c != 'L') {
      return std::nullopt;
    }
  }
  return shape;
}

std::optional<Header> parse_header(std::string_view content) {
  if (content.size() < 10 || content.substr(0, 6) != "\x93NUMPY") return std::nullopt;
  const auto byte = [&](size_t index) { return static_cast<size_t>(static_cast<unsigned char>(content[index])); };
  const bool is_long = byte(6) >= 2;
  if (byte(6) < 1 || byte(6) > 3 || (is_long && content.size() < 12)) return std::nullopt;
  const size_t length = byte(8) + (byte(9) << 8) + (is_long ? (byte(10) << 16) + (byte(11) << 24) : 0);
  const size_t begin = is_long ? 12 : 10;
  if (length > content.size() - begin) return std::nullopt;
  const std::string_view text = content.substr(begin, length);
  const auto kind = value_of(text, "descr"), order = value_of(text, "fortran_order"), shape = value_of(text, "shape");
  if (!kind || !order || !shape || kind->size() < 4 || (*kind)[0] != '\'') return std::nullopt;
  const auto dimensions = parse_shape(*shape);
  if (!dimensions) return std::nullopt;
  Header header;
  header.is_big_endian = (*kind)[1] == '>';
  header.kind = std::string(kind->substr(2, kind->find('\'', 1) - 2));
  header.columns_first = order->substr(0, 4) == "True";
  header.shape = *dimensions;
  header.data = begin + length;
  return header;
}

/// Elements whose first axis runs fastest, in row-major order.
Tensor rows_first(const Tensor& source) {
  Tensor result(source.type());
  const Shape& shape = source.shape();
  std::vector<int64_t> at(static_cast<size_t>(shape.rank()), 0);
  for (int64_t target = 0; target < source.elements(); ++target) {
    int64_t from = 0, stride = 1;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      from += at[static_cast<size_t>(axis)] * stride;
      stride *= shape[axis];
    }
    copy_element(source.dtype(), source.data(), from, result.data(), target);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (++at[static_cast<size_t>(axis)] < shape[axis]) break;
      at[static_cast<size_t>(axis)] = 0;
    }
  }
  return result;
}

}  // namespace

Tensor parse_npy(std::string_view content, const std::string& name) {
  const auto header = parse_header(content);
  if (!header)
    fail(ErrorKind::data, "'{}' is no file of NumPy (.npy), or is damaged; save it again by numpy.save", name);
  const auto row =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& each) { return each.kind == header->kind; });
  if (row == kTypes.end())
    fail(ErrorKind::data, "'{}' holds numbers of NumPy's type '{}', which weft has not; convert it by .astype()", name,
         header->kind);
  const Shape shape(header->shape);
  if (!has_bounded_size(shape)) fail(ErrorKind::data, "'{}' has the impossible shape {}", name, to_string(shape));
  const TensorType type{row->dtype, shape, {}};
  const size_t there = content.size() - header->data;
  if (there != static_cast<size_t>(type.bytes()))
    fail(ErrorKind::data, "'{}' has {} bytes of numbers, but {} wants {}; save it again", name, there, to_string(type),
         type.bytes());
  Tensor tensor(type);
  std::memcpy(tensor.data(), content.data() + header->data, there);
  const auto width = static_cast<size_t>(unpacked_size(type.dtype));
  auto* const bytes = static_cast<std::byte*>(tensor.data());
  for (size_t at = 0; header->is_big_endian && width > 1 && at < there; at += width)
    std::reverse(bytes + at, bytes + at + width);
  return header->columns_first && shape.rank() > 1 ? rows_first(tensor) : tensor;
}

Tensor read_npy(const std::filesystem::path& path) { return parse_npy(read_text(path), path.string()); }

void write_npy(const std::filesystem::path& path, const Tensor& given) {
  Tensor tensor = given.layout() == Layout{} ? given : given.with_layout({});
  const auto row =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& each) { return each.dtype == tensor.dtype(); });
  if (row == kTypes.end()) {
    const DType wide = is_floating(tensor.dtype()) ? DType::f32 : is_signed(tensor.dtype()) ? DType::i8 : DType::u8;
    Tensor converted(wide, tensor.shape());
    for (int64_t index = 0; index < tensor.elements(); ++index)
      convert_element(tensor.dtype(), tensor.data(), index, wide, converted.data(), index);
    write_npy(path, converted);
    return;
  }
  std::string shape;
  for (const int64_t size : tensor.shape()) shape += std::to_string(size) + ", ";
  if (tensor.shape().rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape().rank() == 1) shape.pop_back();
  const char order = unpacked_size(tensor.dtype()) == 1 ? '|' : '<';
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order, row->kind, shape);
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string content = "\x93NUMPY";
  content += '\x01';
  content += '\0';
  content += static_cast<char>(text.size() & 0xff);
  content += static_cast<char>(text.size() >> 8);
  content += text;
  content.append(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  write_atomically(path, content);
}

}  // namespace weft
