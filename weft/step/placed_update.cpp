#include "weft/step/placed_update.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::step {

namespace {

using Ranks = std::vector<bool>;

Ranks both(const Ranks& one, const Ranks& other) {
  Ranks found(one.size());
  for (size_t rank = 0; rank < one.size(); ++rank) found[rank] = one[rank] && other[rank];
  return found;
}

int first_of(const Ranks& ranks) {
  const auto found = std::find(ranks.begin(), ranks.end(), true);
  check(found != ranks.end(), "an update that no rank computes");
  return static_cast<int>(found - ranks.begin());
}

class Placer {
 public:
  Placer(const Graph& graph, int ranks, const std::function<std::vector<int>(const GraphInput& input)>& holders)
      : graph_(graph), all_(static_cast<size_t>(ranks), true), none_(all_.size(), false) {
    has_.assign(graph.values().size(), none_);
    wanted_ = has_;
    for (const GraphInput& input : graph.inputs())
      for (const int rank : holders(input)) has_[at(input.value)][static_cast<size_t>(rank)] = true;
  }

  PlacedUpdate run() {
    for (const Node& node : graph_.nodes()) {
      const Ranks where = can_run_on(node);
      for (const ValueId output : node.outputs) has_[at(output)] = where;
    }
    for (const GraphOutput& output : graph_.outputs()) wanted_[at(output.value)] = all_;
    for (const StateUpdate& update : graph_.updates())
      want(update.value, has_[at(graph_.find_input(update.state)->value)]);
    PlacedUpdate placed;
    placed.runs_on.assign(graph_.nodes().size(), none_);
    for (size_t index = graph_.nodes().size(); index-- > 0;) {
      Ranks& runs_on = placed.runs_on[index];
      for (const ValueId output : graph_.nodes()[index].outputs)
        for (size_t rank = 0; rank < all_.size(); ++rank) {
          if (!wanted_[at(output)][rank]) continue;
          runs_on[has_[at(output)][rank] ? rank : static_cast<size_t>(first_of(has_[at(output)]))] = true;
        }
      for (const ValueId input : graph_.nodes()[index].inputs) want(input, runs_on);
    }
    add_messages(placed);
    return placed;
  }

 private:
  static size_t at(ValueId value) { return static_cast<size_t>(value.index); }

  void want(ValueId value, const Ranks& ranks) {
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (ranks[rank]) wanted_[at(value)][rank] = true;
  }

  /// Where its largest operands are: smaller ones are brought there, so that all who hold a weight update it alike.
  Ranks can_run_on(const Node& node) const {
    int64_t largest = 0;
    for (const ValueId input : node.inputs) largest = std::max(largest, graph_.type(input).bytes());
    Ranks where = all_;
    ValueId first;
    for (const ValueId input : node.inputs) {
      if (graph_.type(input).bytes() < largest) continue;
      where = both(where, has_[at(input)]);
      if (!first.valid()) first = input;
    }
    if (std::find(where.begin(), where.end(), true) != where.end()) return where;
    return has_[at(first)];
  }

  void add_messages(PlacedUpdate& placed) const {
    for (size_t value = 0; value < wanted_.size(); ++value)
      for (size_t rank = 0; rank < all_.size(); ++rank)
        if (wanted_[value][rank] && !has_[value][rank])
          placed.messages.push_back(
              {ValueId{static_cast<int32_t>(value)}, first_of(has_[value]), static_cast<int>(rank)});
  }

  const Graph& graph_;
  const Ranks all_, none_;
  std::vector<Ranks> has_, wanted_;  // per value
};

}  // namespace

PlacedUpdate place_update(const Graph& update, int ranks,
                          const std::function<std::vector<int>(const GraphInput& input)>& holders) {
  return Placer(update, ranks, holders).run();
}

}  // namespace weft::step
