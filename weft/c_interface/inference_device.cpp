#include "weft/c_interface/inference_device.h"

#include "weft/cpu/cpu_backend.h"
#include "weft/cpu/inference_kernels.h"

namespace weft::c_interface {

std::unique_ptr<Device> make_inference_device(const OpRegistry& registry, int threads) {
  return std::make_unique<CpuBackend>(threads, inference_kernels(registry));
}

}  // namespace weft::c_interface
