// Where a device has memory of its own: nodes that carry batches and scalars there and outputs back, and between the
// two what ranks exchange, so that the plan shows and places them.
#pragma once

#include "weft/device/backend.h"
#include "weft/graph/graph.h"

namespace weft::passes {

/// Adds a `copy_to_device` for each batch and scalar input that is read, and a `copy_to_host` for each output; the same
/// around each node that works on the host's memory (works_on_host), but between two such. Changes nothing where the
/// device's memory is the host's.
Graph copy_between_spaces(const Graph& graph, const Backend& backend);

}  // namespace weft::passes
