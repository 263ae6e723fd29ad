#include "weft/report/shared_states.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/graph/tensor_parts.h"
#include "weft/step/micro_batches.h"
#include "weft/step/optimizers/optimizer.h"
#include "weft/step/virtual_ranks.h"

namespace weft::report {

std::string shared_states_text(const Graph& graph) {
  int64_t weights = 0, sums = 0, slots = 0, shared = 0, in_all = 0, ranks = 0;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::parameter && input.kind != InputKind::state) continue;
    const int64_t bytes = align_up(graph.type(input.value).bytes());
    const bool is_slot = input.name.starts_with(step::kSlotPrefix);
    const bool is_sum = input.name.starts_with(step::slot_name(step::kGradientSumSlot, "")) ||
                        input.name.starts_with(step::slot_name(step::kShardSumSlot, "")) ||
                        input.name.starts_with(step::slot_name(step::kMicroSumSlot, ""));
    (is_sum ? sums : is_slot ? slots : weights) += bytes;
    const auto& sharding = graph.sharding(input.value);
    const int64_t parts = sharding ? parts_of(*sharding) : 1;
    if (parts == 1) continue;
    shared += bytes;
    in_all += byte_size(graph.type(input.value).dtype, sharding->whole.elements());
    ranks = std::max(ranks, parts);
  }
  if (ranks == 0) return "";
  const auto shown = [](int64_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  return fmt::format(
      "states of this rank: {} of weights and statistics, {}{} of the optimiser; {} of it are its parts of {} that {} "
      "ranks share\n",
      shown(weights), sums > 0 ? shown(sums) + " of sums of gradients, " : "", shown(slots), shown(shared),
      shown(in_all), ranks);
}

}  // namespace weft::report
