// A tensor: dtype, logical shape, physical layout and a shared, 64-byte aligned buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weft/tensor/dtype.h"
#include "weft/tensor/layout.h"
#include "weft/tensor/shape.h"

namespace weft {

inline constexpr int64_t kAlignment = 64;  // bytes: a cache line and an AVX-512 vector
inline int64_t align_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// What a tensor is, without its content.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout;

  int64_t elements() const { return shape.elements(); }
  /// Bytes in memory, layout padding included.
  int64_t bytes() const { return byte_size(dtype, storage_elements(shape, layout)); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// The same of the elements in memory, layout padding included.
bool has_bounded_size(const TensorType& type);

/// "f32[64,3,32,32]" or "f32[64,16,32,32]@aBcd16b"
std::string to_string(const TensorType& type);
/// Reverses to_string; Error(data) with the text.
TensorType parse_tensor_type(std::string_view text);

/// Zeroed memory of at least `bytes` bytes, aligned to kAlignment. Error(io) where the system has none left.
std::shared_ptr<std::byte> allocate_aligned(int64_t bytes);

class Tensor {
 public:
  Tensor() = default;
  /// Allocates zeros.
  explicit Tensor(TensorType type);
  Tensor(DType dtype, Shape shape) : Tensor(TensorType{dtype, std::move(shape), {}}) {}
  /// A plain f32 tensor with the given values, row-major.
  static Tensor of(Shape shape, std::span<const float> values);
  static Tensor of_i32(Shape shape, std::span<const int32_t> values);
  /// Memory that somebody else has allocated, of at least type.bytes() bytes: nothing is copied.
  static Tensor adopt(TensorType type, std::shared_ptr<std::byte> memory);

  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  const Layout& layout() const { return type_.layout; }
  int64_t elements() const { return type_.elements(); }
  int64_t bytes() const { return type_.bytes(); }
  bool empty() const { return buffer_ == nullptr; }

  void* data() { return buffer_.get(); }
  const void* data() const { return buffer_.get(); }
  template <typename T>
  T* data_as() {
    return reinterpret_cast<T*>(buffer_.get());
  }
  template <typename T>
  const T* data_as() const {
    return reinterpret_cast<const T*>(buffer_.get());
  }
  /// The same memory, read as another type that takes as many bytes.
  Tensor reinterpreted(TensorType type) const;
  /// A deep copy.
  Tensor clone() const;
  /// The same elements in another layout (a copy); slow generic walk, for state files and tests.
  Tensor with_layout(const Layout& layout) const;

 private:
  TensorType type_;
  std::shared_ptr<std::byte> buffer_;
};

/// Copies elements between two layouts of one shape; fills the target's padding with zeros.
void copy_layout(const TensorType& from, const void* source, const TensorType& to, void* target);

// bf16 and f16 conversions, round to nearest even.
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);

}  // namespace weft
