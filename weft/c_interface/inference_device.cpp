#include "weft/c_interface/inference_device.h"

#include "weft/cpu/cpu_backend.h"

namespace weft::c_interface {

std::unique_ptr<Device> make_inference_device(int threads) { return std::make_unique<CpuBackend>(threads); }

}  // namespace weft::c_interface
