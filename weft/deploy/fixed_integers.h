// A quantized graph whose integers C and hardware reproduce: from sums to 8 bits by a multiplier and a shift.
#pragma once

#include "weft/device/backend.h"
#include "weft/graph/graph.h"

namespace weft::deploy {

/// Forms products of integers (passes/integer/form_integer_products.h) and lets each requantize by the fixed kind
/// (ops/integer/requantization.h). Error(usage) where no layer gives integers.
Graph with_fixed_integers(const Graph& graph, const Backend& backend);

}  // namespace weft::deploy
