// A machine with one kernel for everything, for plans that do not depend on the real one's.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "weft/device/backend.h"

namespace weft {

class PlainBackend : public Backend {
 public:
  /// Its kernel wants 1024 bytes of workspace for this op.
  explicit PlainBackend(std::string op_with_workspace) : op_with_workspace_(std::move(op_with_workspace)) {}

  std::optional<LayoutChoice> preferred_layouts(const NodeSignature&) const override { return std::nullopt; }
  bool supports_layouts(const NodeSignature&) const override { return true; }
  KernelChoice choose_kernel(const NodeSignature& node) const override {
    return {"plain", node.op->name == op_with_workspace_ ? 1024 : 0, {}};
  }
  bool computes_fast(DType) const override { return false; }

 private:
  std::string op_with_workspace_;
};

}  // namespace weft
