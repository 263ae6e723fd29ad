#include "weft/tensor/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include "weft/base/error.h"
#include "weft/tensor/element.h"

namespace weft {

bool has_bounded_size(const TensorType& type) {
  if (!has_bounded_size(type.shape)) return false;
  Shape padded = type.shape;
  for (int axis = 0; axis < padded.rank(); ++axis) {
    const int64_t block = block_of(type.layout, axis);
    padded[axis] = (padded[axis] + block - 1) / block * block;
  }
  return has_bounded_size(padded);
}

std::string to_string(const TensorType& type) {
  std::string text = fmt::format("{}[{}]", name_of(type.dtype), fmt::join(type.shape.dims(), ","));
  if (!type.layout.is_plain()) text += "@" + to_string(type.layout);
  return text;
}

TensorType parse_tensor_type(std::string_view text) {
  const auto bad = [&](const char* why) { fail(ErrorKind::data, "'{}' is no tensor type ({})", text, why); };
  const size_t open = text.find('['), close = text.find(']');
  if (open == text.npos || close == text.npos || close < open) bad("want dtype[dims]");
  const auto dtype = parse_dtype(text.substr(0, open));
  if (!dtype) bad("unknown dtype");
  std::vector<int64_t> dims;
  std::string_view rest = text.substr(open + 1, close - open - 1);
  while (!rest.empty()) {
    int64_t dim = 0;
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), dim);
    if (code != std::errc() || dim < 0) bad("a dimension is no number");
    dims.push_back(dim);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (!rest.empty()) {
      if (rest.front() != ',' || rest.size() == 1) bad("dimensions are separated by commas");
      rest.remove_prefix(1);
    }
  }
  TensorType type{*dtype, Shape(std::move(dims)), {}};
  const std::string_view tail = text.substr(close + 1);
  if (!tail.empty()) {
    if (tail.front() != '@') bad("text after ']'");
    type.layout = parse_layout(tail.substr(1), type.shape.rank());
  }
  if (!has_bounded_size(type)) bad("more elements than any memory holds");
  return type;
}

namespace {

[[noreturn]] void fail_for_memory(int64_t bytes) {
  fail(ErrorKind::io, "no memory for {} bytes; choose a smaller batch or model", bytes);
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // which would not see reads behind the end of such memory
#define WEFT_HAS_LARGE_PAGES
constexpr size_t kLargePage = 2 << 20;  // of x86 and most of ARM

/// Pages of the system, which are zero. They take memory only once they are touched: an arena takes none while states
/// are still converted to its layouts. Large pages spare the processor most of its searches for addresses.
std::shared_ptr<std::byte> map_large(size_t size, int64_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t length = (size + page - 1) / page * page;
  void* const mapped = mmap(nullptr, length + kLargePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail_for_memory(bytes);
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t before = (kLargePage - reinterpret_cast<uintptr_t>(begin) % kLargePage) % kLargePage;
  std::byte* const memory = begin + before;
  if (before > 0) munmap(begin, before);
  munmap(memory + length, kLargePage - before);  // never empty
  madvise(memory, size, MADV_HUGEPAGE);          // a wish: no answer matters
  return {memory, [length](std::byte* pointer) { munmap(pointer, length); }};
}
#endif

}  // namespace

std::shared_ptr<std::byte> allocate_aligned(int64_t bytes) {
  const auto size = static_cast<size_t>(align_up(std::max<int64_t>(bytes, 1)));
#if defined(WEFT_HAS_LARGE_PAGES)
  if (size >= kLargePage) return map_large(size, bytes);
#endif
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<size_t>(kAlignment), size) != 0) fail_for_memory(bytes);
  std::memset(memory, 0, size);
  return {static_cast<std::byte*>(memory), [](std::byte* pointer) { std::free(pointer); }};
}

Tensor::Tensor(TensorType type) : type_(std::move(type)), buffer_(allocate_aligned(type_.bytes())) {}

Tensor Tensor::of(Shape shape, std::span<const float> values) {
  Tensor tensor(DType::f32, std::move(shape));
  check(static_cast<int64_t>(values.size()) == tensor.elements(), "Tensor::of: as many values as elements");
  std::memcpy(tensor.data(), values.data(), values.size_bytes());
  return tensor;
}

Tensor Tensor::of_i32(Shape shape, std::span<const int32_t> values) {
  Tensor tensor(DType::i32, std::move(shape));
  check(static_cast<int64_t>(values.size()) == tensor.elements(), "Tensor::of_i32: as many values as elements");
  std::memcpy(tensor.data(), values.data(), values.size_bytes());
  return tensor;
}

Tensor Tensor::adopt(TensorType type, std::shared_ptr<std::byte> memory) {
  check(memory != nullptr, "Tensor::adopt: memory");
  Tensor tensor;
  tensor.type_ = std::move(type);
  tensor.buffer_ = std::move(memory);
  return tensor;
}

Tensor Tensor::reinterpreted(TensorType type) const {
  check(type.bytes() == bytes(), "Tensor::reinterpreted: a type of as many bytes");
  return adopt(std::move(type), buffer_);
}

Tensor Tensor::clone() const {
  Tensor copy(type_);
  std::memcpy(copy.data(), data(), static_cast<size_t>(bytes()));
  return copy;
}

Tensor Tensor::with_layout(const Layout& layout) const {
  Tensor copy(TensorType{type_.dtype, type_.shape, layout});
  copy_layout(type_, data(), copy.type_, copy.data());
  return copy;
}

namespace {

/// Copies all elements with the given indices on the axes before `axis`; T has the size of an element.
template <typename T>
void copy_axes(const std::vector<std::vector<int64_t>>& from, const std::vector<std::vector<int64_t>>& to, size_t axis,
               const T* source, T* target) {
  if (axis == from.size()) {
    *target = *source;
    return;
  }
  const std::vector<int64_t>&from_offsets = from[axis], &to_offsets = to[axis];
  if (axis + 1 == from.size()) {
    for (size_t index = 0; index < from_offsets.size(); ++index)
      target[to_offsets[index]] = source[from_offsets[index]];
    return;
  }
  for (size_t index = 0; index < from_offsets.size(); ++index)
    copy_axes(from, to, axis + 1, source + from_offsets[index], target + to_offsets[index]);
}

/// The same for elements that share bytes; slow.
void copy_packed_axes(DType dtype, const std::vector<std::vector<int64_t>>& from,
                      const std::vector<std::vector<int64_t>>& to, const void* source, void* target) {
  int64_t elements = 1;
  for (const auto& offsets : from) elements *= static_cast<int64_t>(offsets.size());
  for (int64_t position = 0; position < elements; ++position) {
    int64_t rest = position, source_index = 0, target_index = 0;
    for (size_t axis = from.size(); axis-- > 0;) {
      const auto dim = static_cast<int64_t>(from[axis].size());
      source_index += from[axis][static_cast<size_t>(rest % dim)];
      target_index += to[axis][static_cast<size_t>(rest % dim)];
      rest /= dim;
    }
    copy_element(dtype, source, source_index, target, target_index);
  }
}

}  // namespace

void copy_layout(const TensorType& from, const void* source, const TensorType& to, void* target) {
  check(from.shape == to.shape && from.dtype == to.dtype, "copy_layout wants equal shapes and dtypes");
  if (from.layout == to.layout) {
    std::memcpy(target, source, static_cast<size_t>(from.bytes()));
    return;
  }
  if (to.bytes() != byte_size(to.dtype, to.elements())) std::memset(target, 0, static_cast<size_t>(to.bytes()));
  const auto from_offsets = axis_offsets(from.shape, from.layout), to_offsets = axis_offsets(to.shape, to.layout);
  if (is_packed(from.dtype)) return copy_packed_axes(from.dtype, from_offsets, to_offsets, source, target);
  const auto copy = [&]<typename T>(T) {
    copy_axes(from_offsets, to_offsets, 0, static_cast<const T*>(source), static_cast<T*>(target));
  };
  switch (unpacked_size(from.dtype)) {
    case 8:
      return copy(uint64_t{});
    case 4:
      return copy(uint32_t{});
    case 2:
      return copy(uint16_t{});
    default:
      return copy(uint8_t{});
  }
}

float bf16_to_f32(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t f32_to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);  // NaN stays quiet
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>(bits >> 16);
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  uint32_t wide;
  if (exponent == 0x1f) {
    wide = sign | 0x7f800000u | (mantissa << 13);
  } else if (exponent != 0) {
    wide = sign | ((exponent + 112) << 23) | (mantissa << 13);
  } else {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t f32_to_f16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal in f16: let the FPU round at 2^-24
    float absolute;
    std::memcpy(&absolute, &magnitude, sizeof absolute);
    const float shifted = absolute + 0.5f;  // 0.5's ulp is 2^-24
    uint32_t rounded;
    std::memcpy(&rounded, &shifted, sizeof rounded);
    return static_cast<uint16_t>(sign | (rounded - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace weft
