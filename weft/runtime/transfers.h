// The kernels of a plan's stores and loads. A load asks for what the next loads read, so that the disk reads while the
// nodes between them compute.
#pragma once

#include <memory>
#include <vector>

#include "weft/device/kernel.h"
#include "weft/device/offload_file.h"
#include "weft/plan/plan.h"

namespace weft {

/// Per step of the plan; null where it is neither a store nor a load. Error(internal) where there are some and the file
/// is absent or smaller than the plan says.
std::vector<std::unique_ptr<Kernel>> make_transfers(const Graph& graph, const Plan& plan,
                                                    const std::shared_ptr<OffloadFile>& file);

}  // namespace weft
