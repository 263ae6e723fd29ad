// The state of a training run: named tensors, independent of any plan. Each keeps the layout that the last plan wanted.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

class State {
 public:
  void set(const std::string& name, Tensor tensor);
  void remove(const std::string& name) { tensors_.erase(name); }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// In whatever layout it has now. Error(usage) with the nearest name where there is none.
  const Tensor& get(const std::string& name) const;
  Tensor& get(const std::string& name);
  /// A plain (row-major) copy.
  Tensor plain(const std::string& name) const;
  /// Converts the tensor to `layout` if it has another; Error(shape) where shape or dtype differ from `type`.
  Tensor& require(const std::string& name, const TensorType& type);
  std::vector<std::string> names() const;
  int64_t bytes() const;

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace weft
