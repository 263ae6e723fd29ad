// All kernels that serve a node, not only the first: those of the candidates, and what else oneDNN has for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/cpu/cpu_backend.h"

namespace weft {

/// The first candidate's first, none twice; of plain loops only what is the only one.
std::vector<std::unique_ptr<Kernel>> make_all_kernels(const CpuBackend& backend, const NodeSignature& node);

}  // namespace weft
