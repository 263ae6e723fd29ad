// The device on which the inference library computes: the CPU, with the kernels that inference wants.
#pragma once

#include <memory>

#include "weft/device/device.h"

namespace weft::c_interface {

/// Error(usage) for less than one thread.
std::unique_ptr<Device> make_inference_device(int threads);

}  // namespace weft::c_interface
