#include "weft/passes/support/node_seconds.h"

#include <algorithm>

namespace weft::passes {

namespace {

// Per thread, as docs/performance.md measured them: large matrix products in f32, and a copy. Processors with matrix
// units for 16-bit numbers run products of those about four times as fast.
constexpr double kFlopsPerSecond = 2.1e11;
constexpr double kBytesPerSecond = 2e10;
constexpr double kNarrowSpeedup = 4;
constexpr double kCallSeconds = 3e-6;

}  // namespace

double node_seconds(const NodeSignature& node, int threads) {
  if (node.op->is_view) return 0;
  double bytes = 0, flops = 0;
  for (const auto* types : {&node.inputs, &node.outputs})
    for (const TensorType& type : *types) bytes += static_cast<double>(type.bytes());
  if (node.op->flops) flops = static_cast<double>(node.op->flops(node.inputs, node.outputs, node.attributes));
  const bool narrow = !node.inputs.empty() && is_floating(node.inputs[0].dtype) && size_of(node.inputs[0].dtype) == 2;
  const double arithmetic = flops / (kFlopsPerSecond * (narrow ? kNarrowSpeedup : 1));
  return kCallSeconds + std::max(arithmetic, bytes / kBytesPerSecond) / threads;
}

}  // namespace weft::passes
