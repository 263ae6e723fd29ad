#include "weft/run/long_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace weft::run {

namespace {

/// A step per letter, and one for the blank that tells equal neighbours apart (Graves et al. 2006, section 3.1).
int64_t steps_of(std::span<const int32_t> text) {
  int64_t steps = 0;
  for (size_t at = 0; at < text.size() && text[at] != 0; ++at) steps += at > 0 && text[at] == text[at - 1] ? 2 : 1;
  return steps;
}

}  // namespace

std::string note_of_long_texts(const Graph& step, const data::Dataset& data) {
  const data::DatasetInfo& info = data.info();
  const auto& nodes = step.nodes();
  const auto loss =
      std::find_if(nodes.begin(), nodes.end(), [](const Node& node) { return node.op->name == "ctc_loss"; });
  if (info.target_kind() != data::TargetKind::text || loss == nodes.end()) return "";
  const int64_t steps = step.shape(loss->inputs[0])[0];  // [T,N,classes]
  std::vector<uint8_t> target(static_cast<size_t>(info.target_bytes()));
  int64_t count = 0, most = 0;
  for (int64_t index = 0; index < data.size(); ++index) {
    data.get_target({.index = index}, target);
    const int64_t wanted = steps_of(data::view_as<int32_t>(target));
    if (wanted > steps) ++count;
    most = std::max(most, wanted);
  }
  if (count == 0) return "";
  return fmt::format(
      "'{}': {} text{} cannot be learned: with a blank between equal letters the longest takes {} steps, "
      "and the network has {}; give wider pictures, by width=",
      info.name, count, count == 1 ? "" : "s", most, steps);
}

}  // namespace weft::run
