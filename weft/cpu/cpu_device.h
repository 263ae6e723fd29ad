// The CPU as a kind of device.
#pragma once

#include "weft/device/device_kind.h"

namespace weft {

DeviceKind cpu_device();

}  // namespace weft
