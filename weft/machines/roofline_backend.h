// A device that is not here, as passes and plans ask it: it takes every node in plain layouts and runs none. So graphs
// for it are fused and placed in memory as those for devices that are.
#pragma once

#include "weft/device/backend.h"
#include "weft/machines/device_file.h"

namespace weft::machines {

class RooflineBackend : public Backend {
 public:
  explicit RooflineBackend(DeviceFile device) : device_(std::move(device)) {}

  std::optional<LayoutChoice> preferred_layouts(const NodeSignature&) const override { return std::nullopt; }
  bool supports_layouts(const NodeSignature&) const override { return true; }
  KernelChoice choose_kernel(const NodeSignature&) const override {
    return {.kernel = "roofline", .workspace_bytes = 0, .declined = {}};
  }
  bool computes_fast(DType dtype) const override {
    if (dtype == DType::bf16 || dtype == DType::f16)
      return device_.peak(Arithmetic::f16) > device_.peak(Arithmetic::f32);
    return dtype == DType::f32;
  }

 private:
  const DeviceFile device_;
};

}  // namespace weft::machines
