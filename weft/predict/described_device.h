// A device that is not here, as planning sees it: it takes plain layouts, multiplies in the types that its file names,
// and its kernels are the plain loops of the device that is here, which never run. Times are those of its file
// (machines/roofline.h).
#pragma once

#include "weft/device/device_kind.h"
#include "weft/machines/device_file.h"

namespace weft::predict {

/// `here` makes the device whose reference kernels stand in.
DeviceKind described_device(const machines::DeviceFile& file, const DeviceKind& here);

}  // namespace weft::predict
