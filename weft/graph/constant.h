// The data of a constant tensor: shared by all graphs that hold it, never copied with them, known by a hash.
#pragma once

#include <memory>

#include "weft/base/hash128.h"
#include "weft/tensor/tensor.h"

namespace weft {

class ConstantData {
 public:
  /// Takes the tensor's memory as it is: nobody may write to it from now on. Reads it once, for the hash.
  explicit ConstantData(Tensor tensor);

  const Tensor& tensor() const { return tensor_; }
  const TensorType& type() const { return tensor_.type(); }
  /// Of type and bytes.
  const Hash128& hash() const { return hash_; }

 private:
  Tensor tensor_;
  Hash128 hash_;
};

/// What a node holds of it. Two are equal where their hashes are.
class Constant {
 public:
  Constant() = default;
  explicit Constant(Tensor tensor) : data_(std::make_shared<const ConstantData>(std::move(tensor))) {}

  explicit operator bool() const { return data_ != nullptr; }
  const ConstantData& operator*() const { return *data_; }
  const ConstantData* operator->() const { return data_.get(); }
  friend bool operator==(const Constant& a, const Constant& b) {
    return a.data_ == b.data_ || (a && b && a->hash() == b->hash());
  }

 private:
  std::shared_ptr<const ConstantData> data_;
};

}  // namespace weft
