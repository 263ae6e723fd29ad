// The logical shape of a tensor: static, outermost dimension first, images in NCHW order.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace weft {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t& operator[](int axis) { return dims_[static_cast<size_t>(axis)]; }
  /// Product of the dimensions; 1 for a scalar (rank 0).
  int64_t elements() const;
  const std::vector<int64_t>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<int64_t> dims_;
};

/// More than any memory holds, and so few that sums of sizes do not overflow.
inline constexpr int64_t kMostElements = int64_t{1} << 48;
/// True where no dimension is negative and the product of those above 0 is at most kMostElements.
bool has_bounded_size(const Shape& shape);

/// "(128,1,28,28)"
std::string to_string(const Shape& shape);
/// Row-major strides in elements.
std::vector<int64_t> row_major_strides(const Shape& shape);

}  // namespace weft
