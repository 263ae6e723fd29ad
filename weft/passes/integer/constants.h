// Numbers of values that constants alone decide.
#pragma once

#include <optional>
#include <vector>

#include "weft/device/backend.h"
#include "weft/graph/graph.h"

namespace weft::passes {

/// Of a tensor that the graph holds, a fill, and what the backend computes of such; nullopt for anything else, and for
/// more than `most_bytes`.
std::optional<Tensor> constant_value(const Graph& graph, const Backend& backend, ValueId value, int64_t most_bytes);

/// The elements as reals.
std::vector<double> numbers_of(const Tensor& tensor);

}  // namespace weft::passes
