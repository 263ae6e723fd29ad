// Kernels of messages from rank to rank, for a rank of several.
#pragma once

#include <memory>

#include "weft/comm/collectives.h"
#include "weft/device/kernel.h"

namespace weft {

/// The message of a node that sends or receives, or of a half.
comm::MessageSpec message_of(const NodeSignature& node);

/// Puts them before all others.
void add_message_kernels(KernelTable& table, const std::shared_ptr<comm::Collectives>& collectives);

}  // namespace weft
