#include "weft/device/device.h"

#include "weft/base/error.h"

namespace weft {

MachineRates Device::measure_rates() const {
  fail(ErrorKind::usage, "this device does not measure its own rates; give a file with them, or take the default ones");
}

}  // namespace weft
