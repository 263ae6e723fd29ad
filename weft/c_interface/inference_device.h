// The device on which the inference library computes: the CPU, with the kernels that inference wants.
#pragma once

#include <memory>

#include "weft/device/device.h"

namespace weft::c_interface {

/// For the ops of this registry. Error(usage) for less than one thread.
std::unique_ptr<Device> make_inference_device(const OpRegistry& registry, int threads);

}  // namespace weft::c_interface
