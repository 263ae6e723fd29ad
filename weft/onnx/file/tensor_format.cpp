#include "weft/onnx/file/tensor_format.h"

#include <onnx.pb.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>

#include "weft/base/error.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

struct TypeRow {
  int32_t data_type;
  DType dtype;
};
constexpr std::array<TypeRow, 17> kTypes{{{1, DType::f32},
                                          {2, DType::u8},
                                          {3, DType::i8},
                                          {4, DType::u16},
                                          {5, DType::i16},
                                          {6, DType::i32},
                                          {7, DType::i64},
                                          {9, DType::boolean},
                                          {10, DType::f16},
                                          {11, DType::f64},
                                          {12, DType::u32},
                                          {13, DType::u64},
                                          {16, DType::bf16},
                                          {21, DType::u4},
                                          {22, DType::i4},
                                          {25, DType::u2},
                                          {26, DType::i2}}};

[[noreturn]] void fail_at(const onnx_format::Tensor& tensor, const std::string& what) {
  fail(ErrorKind::data, "ONNX: the tensor '{}' {}; the file is damaged or was not written as ONNX says", tensor.name(),
       what);
}

Shape shape_of(const onnx_format::Tensor& tensor) {
  Shape shape(std::vector<int64_t>(tensor.dims().begin(), tensor.dims().end()));
  if (!has_bounded_size(shape)) fail_at(tensor, "has the impossible shape " + to_string(shape));
  return shape;
}

struct ExternalPart {
  std::filesystem::path path;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

int64_t parse_size(const onnx_format::Tensor& tensor, const std::string& key, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    fail_at(tensor, "gives '" + text + "' as the " + key + " of its external data");
  return value;
}

/// Only files in the model's folder, so that a model cannot read what it has nothing to do with.
ExternalPart find_external(const onnx_format::Tensor& tensor, const std::filesystem::path& folder) {
  ExternalPart part;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") part.path = entry.value();
    if (entry.key() == "offset") part.offset = parse_size(tensor, "offset", entry.value());
    if (entry.key() == "length") part.length = parse_size(tensor, "length", entry.value());
  }
  if (part.path.empty()) fail_at(tensor, "is said to lie in another file, which is not named");
  if (folder.empty()) fail_at(tensor, "lies in another file, '" + part.path.string() + "', where none may be");
  std::error_code error;
  const auto base = std::filesystem::weakly_canonical(folder, error);
  const auto whole = std::filesystem::weakly_canonical(folder / part.path, error);
  const auto relative = whole.lexically_relative(base);
  if (error || part.path.is_absolute() || relative.empty() || *relative.begin() == "..")
    fail(ErrorKind::data,
         "ONNX: the tensor '{}' wants its data from '{}', which is outside the model's folder; such a file is not read",
         tensor.name(), part.path.string());
  part.path = whole;
  return part;
}

/// The bytes that are there, before memory for the whole tensor is asked for.
void check_amount(const onnx_format::Tensor& tensor, int64_t have, int64_t want, const char* unit) {
  if (have != want) fail_at(tensor, fmt::format("holds {} {}, but its shape wants {}", have, unit, want));
}

template <typename Number, typename Field>
Tensor from_field(const onnx_format::Tensor& source, const TensorType& type, const Field& field) {
  check_amount(source, field.size(), type.elements(), "numbers");
  Tensor result(type);
  std::memcpy(result.data(), field.data(), static_cast<size_t>(field.size()) * sizeof(Number));
  return result;
}

/// What is no wider than 32 bits and has no field of its own; real types of 16 bits as their bits, packed ones by
/// bytes.
Tensor from_small(const onnx_format::Tensor& source, const TensorType& type) {
  const auto& field = source.int32_data();
  const bool is_packed_type = is_packed(type.dtype);
  check_amount(source, field.size(), is_packed_type ? type.bytes() : type.elements(), "numbers");
  Tensor result(type);
  auto* const bytes = static_cast<std::byte*>(result.data());
  const auto width = is_packed_type ? size_t{1} : static_cast<size_t>(unpacked_size(type.dtype));
  for (int index = 0; index < field.size(); ++index) {
    const auto bits = static_cast<uint32_t>(field[index]);
    std::memcpy(bytes + static_cast<size_t>(index) * width, &bits, width);
  }
  return result;
}

/// Booleans are 0 or 1, and the bits behind the last packed element 0, whatever the file has.
void tidy(Tensor& tensor) {
  auto* const bytes = static_cast<uint8_t*>(tensor.data());
  if (tensor.dtype() == DType::boolean)
    for (int64_t index = 0; index < tensor.bytes(); ++index) bytes[index] = bytes[index] != 0;
  if (!is_packed(tensor.dtype()) || tensor.elements() == 0) return;
  const int64_t used_bits = tensor.elements() * bits_of(tensor.dtype()) % 8;
  if (used_bits != 0) bytes[tensor.bytes() - 1] &= static_cast<uint8_t>((1 << used_bits) - 1);
}

Tensor decode_numbers(const onnx_format::Tensor& source, const TensorType& type, ExternalData& external) {
  if (source.data_location() == onnx_format::Tensor::EXTERNAL) return external.read(source, type);
  if (source.has_raw_data()) {
    check_amount(source, static_cast<int64_t>(source.raw_data().size()), type.bytes(), "bytes");
    Tensor result(type);
    std::memcpy(result.data(), source.raw_data().data(), source.raw_data().size());
    return result;
  }
  switch (type.dtype) {
    case DType::f32:
      return from_field<float>(source, type, source.float_data());
    case DType::f64:
      return from_field<double>(source, type, source.double_data());
    case DType::i64:
      return from_field<int64_t>(source, type, source.int64_data());
    case DType::u64:
      return from_field<uint64_t>(source, type, source.uint64_data());
    case DType::u32: {
      check_amount(source, source.uint64_data_size(), type.elements(), "numbers");
      Tensor result(type);
      for (int index = 0; index < source.uint64_data_size(); ++index)
        result.data_as<uint32_t>()[index] = static_cast<uint32_t>(source.uint64_data(index));
      return result;
    }
    default:
      return from_small(source, type);
  }
}

}  // namespace

std::optional<DType> dtype_of(int32_t data_type) {
  for (const TypeRow& row : kTypes)
    if (row.data_type == data_type) return row.dtype;
  return std::nullopt;
}

int32_t data_type_of(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.data_type;
  return 0;
}

std::string name_of_data_type(int32_t data_type) {
  switch (data_type) {
    case 0:
      return "undefined";
    case kStrings:
      return "string";
    case 14:
      return "complex64";
    case 15:
      return "complex128";
    case 17:
      return "float8e4m3fn";
    case 18:
      return "float8e4m3fnuz";
    case 19:
      return "float8e5m2";
    case 20:
      return "float8e5m2fnuz";
    case 23:
      return "float4e2m1";
    case 24:
      return "float8e8m0";
    default:
      break;
  }
  const auto dtype = dtype_of(data_type);
  return dtype ? std::string(weft::name_of(*dtype)) : fmt::format("type number {}", data_type);
}

Tensor ExternalData::read(const onnx_format::Tensor& tensor, const TensorType& type) {
  const ExternalPart part = find_external(tensor, folder_);
  std::error_code error;
  const auto size = std::filesystem::file_size(part.path, error);
  if (error || !std::filesystem::is_regular_file(part.path))
    fail(ErrorKind::io, "ONNX: the tensor '{}' lies in '{}', which cannot be read ({}); copy it beside the model",
         tensor.name(), part.path.string(), error ? error.message() : "it is no file");
  if (part.length && *part.length != type.bytes())
    fail_at(tensor, fmt::format("has {} bytes of external data, but wants {}", *part.length, type.bytes()));
  if (part.offset > static_cast<int64_t>(size) || type.bytes() > static_cast<int64_t>(size) - part.offset)
    fail(ErrorKind::data,
         "ONNX: the tensor '{}' wants {} bytes from byte {} of '{}', which has {}; copy the file again", tensor.name(),
         type.bytes(), part.offset, part.path.string(), size);
  const std::string name = part.path.string(), key = fmt::format("{}|{}|{}", name, part.offset, to_string(type));
  if (const auto known = parts_.find(key); known != parts_.end()) return known->second;
  int64_t& read = bytes_of_file_[name];
  if (type.bytes() > static_cast<int64_t>(size) - read)
    fail(ErrorKind::data,
         "ONNX: the tensors in '{}' want more bytes than the {} that it has, with '{}': they overlap; export the model "
         "again",
         name, size, tensor.name());
  read += type.bytes();
  Tensor result(type);
  std::ifstream file(part.path, std::ios::binary);
  file.seekg(part.offset);
  file.read(static_cast<char*>(result.data()), result.bytes());
  if (!file) fail(ErrorKind::io, "ONNX: could not read '{}'", part.path.string());
  parts_.emplace(key, result);
  return result;
}

HostValue decode(const onnx_format::Tensor& tensor, ExternalData& external) {
  const Shape shape = shape_of(tensor);
  if (tensor.data_type() == kStrings) {
    check_amount(tensor, tensor.string_data_size(), shape.elements(), "texts");
    return StringTensor{shape, {tensor.string_data().begin(), tensor.string_data().end()}};
  }
  const auto dtype = dtype_of(tensor.data_type());
  if (!dtype)
    fail(ErrorKind::usage, "ONNX: the tensor '{}' has numbers of the type {}, which weft has not", tensor.name(),
         name_of_data_type(tensor.data_type()));
  Tensor result = decode_numbers(tensor, {*dtype, shape, {}}, external);
  tidy(result);
  return result;
}

void encode(const HostValue& value, const std::string& name, onnx_format::Tensor& tensor) {
  tensor.set_name(name);
  if (const StringTensor* strings = value.strings()) {
    tensor.set_data_type(kStrings);
    for (const int64_t size : strings->shape) tensor.add_dims(size);
    for (const std::string& text : strings->values) tensor.add_string_data(text);
    return;
  }
  const Tensor* numbers = value.tensor();
  check(numbers != nullptr, "only tensors are written as tensors");
  const Tensor plain = numbers->layout() == Layout{} ? *numbers : numbers->with_layout({});
  tensor.set_data_type(data_type_of(plain.dtype()));
  for (const int64_t size : plain.shape()) tensor.add_dims(size);
  tensor.set_raw_data(plain.data(), static_cast<size_t>(plain.bytes()));
}

}  // namespace weft::onnx
