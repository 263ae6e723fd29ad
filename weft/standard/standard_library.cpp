// The library that comes with weft: the one place above the library's parts that knows which device there is.
#include "weft/cpu/cpu_device.h"
#include "weft/library/library.h"
#include "weft/ops/all.h"

namespace weft {

Library standard_library() {
  return {ops::make_registry(), standard_kernels(), models::all_models(), data::standard_dataset_kinds(), cpu_device()};
}

}  // namespace weft
