// Constants that several graphs of one model fold alike exist once: what one plan has computed from the weights, the
// next finds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/mapped_file.h"
#include "weft/device/backend.h"

namespace weft::engine {

/// Tensors by what they were computed from.
class SharedConstants {
 public:
  /// Those of them that a graph holds stay, the others go: what was only a step towards them.
  void keep_those_of(const std::vector<const Graph*>& graphs);
  const Tensor* find(const std::string& key) const;
  void add(const std::string& key, Tensor tensor) { tensors_.insert_or_assign(key, std::move(tensor)); }

 private:
  std::map<std::string, Tensor> tensors_;
};

/// A device to compile for, which looks there before it computes a constant. Operands that lie in the mapped file give
/// their memory back once they have been read: what was computed of them takes their place.
class SharingBackend : public Backend {
 public:
  /// Keeps references; `mapping` may be null.
  SharingBackend(const Backend& backend, SharedConstants& constants, const MappedFile* mapping = nullptr)
      : backend_(backend), constants_(constants), mapping_(mapping) {}

  MemoryRules memory_rules() const override { return backend_.memory_rules(); }
  std::optional<LayoutChoice> preferred_layouts(const NodeSignature& node) const override {
    return backend_.preferred_layouts(node);
  }
  bool supports_layouts(const NodeSignature& node) const override { return backend_.supports_layouts(node); }
  KernelChoice choose_kernel(const NodeSignature& node) const override { return backend_.choose_kernel(node); }
  bool takes_granted_workspace(const NodeSignature& node) const override {
    return backend_.takes_granted_workspace(node);
  }
  std::optional<std::vector<Tensor>> evaluate(const NodeSignature& node,
                                              const std::vector<Tensor>& operands) const override;
  bool computes_fast(DType dtype) const override { return backend_.computes_fast(dtype); }
  std::string what_lacks(DType dtype) const override { return backend_.what_lacks(dtype); }

 private:
  const Backend& backend_;
  SharedConstants& constants_;
  const MappedFile* const mapping_;
};

}  // namespace weft::engine
