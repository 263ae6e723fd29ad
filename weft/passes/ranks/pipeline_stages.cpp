#include "weft/passes/ranks/pipeline_stages.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <set>

#include "weft/base/error.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

constexpr double kSlack = 0.05;      // predictions are no better than that
constexpr double kLeastShare = 0.5;  // of an equal share: with less, a stage without weights is not worth a rank

/// What nodes depend on.
struct Dependence {
  std::vector<bool> of_state, of_batch;  // per value; scalars count as batches
};

Dependence find_dependence(const Graph& graph) {
  Dependence found{std::vector<bool>(graph.values().size(), false), std::vector<bool>(graph.values().size(), false)};
  for (const GraphInput& input : graph.inputs()) {
    const bool is_state = input.kind == InputKind::parameter || input.kind == InputKind::state;
    (is_state ? found.of_state : found.of_batch)[index_of(input.value)] = true;
  }
  for (const Node& node : graph.nodes())
    for (const ValueId output : node.outputs)
      for (const ValueId input : node.inputs) {
        if (found.of_state[index_of(input)]) found.of_state[index_of(output)] = true;
        if (found.of_batch[index_of(input)]) found.of_batch[index_of(output)] = true;
      }
  return found;
}

class Cutter {
 public:
  Cutter(const Graph& graph, const GradientOrigins& origins, const std::vector<ValueId>& wanted, int stages,
         const CostModel& costs, int threads)
      : graph_(graph), origins_(origins), users_(find_users(graph)), dependence_(find_dependence(graph)) {
    const size_t count = graph.nodes().size();
    staged_.stages = stages;
    staged_.stage.assign(count, kNoStage);
    staged_.work.assign(count, PipelineWork::forward);
    find_alive(wanted);
    for (size_t index = 0; index < count; ++index)
      seconds_.push_back(staged_.is_alive[index] ? costs.seconds(signature_of(graph, node_at(index)), threads) : 0);
  }

  StagedGraph run() {
    find_homes();
    cut();
    place_backward();
    find_work();
    add_times();
    return std::move(staged_);
  }

 private:
  bool is_forward(size_t index) const { return index < origins_.forward_nodes; }
  const Node& node(size_t index) const { return graph_.nodes()[index]; }
  bool depends(const std::vector<bool>& on, size_t index) const { return on[index_of(node(index).outputs[0])]; }
  bool has_stage(size_t index) const { return staged_.is_alive[index] && depends(dependence_.of_state, index); }
  bool is_of_states_alone(size_t index) const {
    return depends(dependence_.of_state, index) && !depends(dependence_.of_batch, index);
  }

  void find_alive(const std::vector<ValueId>& wanted) {
    std::vector<bool> is_read = find_results(graph_);
    for (const ValueId value : wanted) is_read[index_of(value)] = true;
    staged_.is_alive.assign(graph_.nodes().size(), false);
    for (size_t index = graph_.nodes().size(); index-- > 0;) {
      for (const ValueId output : node(index).outputs)
        if (is_read[index_of(output)]) staged_.is_alive[index] = true;
      if (!staged_.is_alive[index]) continue;
      for (const ValueId input : node(index).inputs) is_read[index_of(input)] = true;
    }
  }

  /// The pieces of the row that is cut, and to which of them each forward node belongs.
  void find_homes() {
    home_.assign(graph_.nodes().size(), kNowhere);
    for (size_t index = 0; index < origins_.forward_nodes; ++index)
      if (has_stage(index) && !is_of_states_alone(index)) home_[index] = pieces_++;
    for (size_t index = origins_.forward_nodes; index-- > 0;) {
      if (!has_stage(index) || !is_of_states_alone(index)) continue;
      for (const ValueId output : node(index).outputs)
        for (const NodeId user : users_[index_of(output)])
          if (is_forward(index_of(user))) home_[index] = std::min(home_[index], home_[index_of(user)]);
      if (home_[index] == kNowhere) home_[index] = 0;
    }
  }

  void cut() {
    std::vector<double> seconds(pieces_, 0);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const NodeId owner = is_forward(index) ? node_at(index) : made_for(index);
      if (owner.valid() && home_[index_of(owner)] != kNowhere) seconds[home_[index_of(owner)]] += seconds_[index];
    }
    const std::vector<double> worth = find_worth(seconds);
    const std::vector<size_t> begins = cut_by_cost(seconds, crossing(), staged_.stages, worth);
    const auto stage_of = [&](size_t piece) {
      return std::upper_bound(begins.begin(), begins.end(), piece) - begins.begin() - 1;
    };
    for (size_t index = 0; index < origins_.forward_nodes; ++index)
      if (home_[index] != kNowhere) staged_.stage[index] = static_cast<int>(stage_of(home_[index]));
    std::vector<double> of_stage(static_cast<size_t>(staged_.stages), 0);
    for (size_t piece = 0; piece < pieces_; ++piece) of_stage[static_cast<size_t>(stage_of(piece))] += worth[piece];
    for (const double each : of_stage) staged_.has_work.push_back(each >= 1);
  }

  /// Of each piece, so that a stage with less than 1 is not worth a rank: it multiplies with no weights, and takes next
  /// to no time. Vectors, as biases, do not count: adding them is no work.
  std::vector<double> find_worth(const std::vector<double>& seconds) const {
    const double least = kLeastShare * std::accumulate(seconds.begin(), seconds.end(), 0.0) / staged_.stages;
    std::vector<double> worth;
    for (const double each : seconds) worth.push_back(least > 0 ? each / least : 1);
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::parameter || graph_.shape(input.value).rank() < 2) continue;
      for (const NodeId user : users_[index_of(input.value)])
        if (is_forward(index_of(user)) && home_[index_of(user)] != kNowhere)
          worth[home_[index_of(user)]] += 2;  // 1, whatever is rounded
    }
    return worth;
  }

  /// Bytes of what comes from before each piece and is read from it on.
  std::vector<int64_t> crossing() const {
    std::vector<int64_t> change(pieces_ + 1, 0);
    for (size_t index = 0; index < origins_.forward_nodes; ++index) {
      if (home_[index] == kNowhere) continue;
      for (const ValueId output : node(index).outputs) {
        size_t last = home_[index];
        for (const NodeId user : users_[index_of(output)])
          if (is_forward(index_of(user)) && home_[index_of(user)] != kNowhere)
            last = std::max(last, home_[index_of(user)]);
        change[home_[index] + 1] += graph_.type(output).bytes();
        if (last < pieces_) change[last + 1] -= graph_.type(output).bytes();
      }
    }
    for (size_t at = 1; at < change.size(); ++at) change[at] += change[at - 1];
    change.resize(pieces_);
    return change;
  }

  NodeId made_for(size_t index) const { return origins_.made_for[index - origins_.forward_nodes]; }
  bool is_sum(size_t index) const { return !is_forward(index) && origins_.is_sum[index - origins_.forward_nodes]; }

  void place_backward() {
    for (size_t index = origins_.forward_nodes; index < graph_.nodes().size(); ++index) {
      if (!has_stage(index) || !made_for(index).valid()) continue;
      staged_.stage[index] = staged_.stage[index_of(made_for(index))];
      if (!is_sum(index)) continue;
      // What one stage alone adds up is sent as one.
      const auto stage_of = [&](ValueId value) {
        const NodeId producer = graph_.value(value).producer;
        return producer.valid() ? staged_.stage[index_of(producer)] : kNoStage;
      };
      const int one = stage_of(node(index).inputs[0]), other = stage_of(node(index).inputs[1]);
      if (one != kNoStage && one == other) staged_.stage[index] = one;
    }
  }

  /// Of the backward nodes, those that lead to the gradient of what another forward node gives.
  void find_work() {
    std::vector<bool> leads_on(graph_.nodes().size(), false);
    for (size_t index = graph_.nodes().size(); index-- > origins_.forward_nodes;) {
      if (!staged_.is_alive[index] || !made_for(index).valid()) continue;
      const bool is_of_weights = is_of_states_alone(index_of(made_for(index)));
      if (!is_of_weights)
        for (const ValueId output : node(index).outputs)
          for (const NodeId user : users_[index_of(output)])
            leads_on[index] = leads_on[index] || leads_there(index, index_of(user), leads_on);
      staged_.work[index] = leads_on[index] ? PipelineWork::backward_inputs : PipelineWork::backward_weights;
    }
  }

  bool leads_there(size_t from, size_t user, const std::vector<bool>& leads_on) const {
    if (!staged_.is_alive[user] || is_forward(user) || !made_for(user).valid()) return false;
    if (is_of_states_alone(index_of(made_for(user)))) return false;
    if (is_sum(user) || (!is_sum(from) && made_for(from) == made_for(user))) return leads_on[user];
    return true;
  }

  void add_times() {
    const auto count = static_cast<size_t>(staged_.stages);
    for (std::vector<double>* times :
         {&staged_.times.forward, &staged_.times.backward_inputs, &staged_.times.backward_weights})
      times->assign(count, 0);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (staged_.stage[index] == kNoStage) continue;
      std::vector<double>& times = staged_.work[index] == PipelineWork::forward ? staged_.times.forward
                                   : staged_.work[index] == PipelineWork::backward_inputs
                                       ? staged_.times.backward_inputs
                                       : staged_.times.backward_weights;
      times[static_cast<size_t>(staged_.stage[index])] += seconds_[index];
    }
  }

  static constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

  const Graph& graph_;
  const GradientOrigins& origins_;
  const std::vector<std::vector<NodeId>> users_;
  const Dependence dependence_;
  std::vector<double> seconds_;  // per node
  std::vector<size_t> home_;     // per node: the piece to which it belongs
  size_t pieces_ = 0;
  StagedGraph staged_;
};

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// The smallest largest part of all pieces in `parts` parts; `sums[at]`: what the pieces before `at` cost.
double least_largest_part(const std::vector<double>& sums, size_t parts) {
  const size_t count = sums.size() - 1;
  std::vector<double> least(sums);  // of the first `end` pieces, for one part more each time
  for (size_t part = 1; part < parts; ++part) {
    std::vector<double> next(count + 1, kUnbounded);
    // A later beginning makes the last part smaller and those before it larger: the best moves on with the end.
    size_t begin = part;
    for (size_t end = part + 1; end <= count; ++end) {
      const auto largest = [&](size_t from) { return std::max(least[from], sums[end] - sums[from]); };
      while (begin + 1 < end && largest(begin + 1) <= largest(begin)) ++begin;
      next[end] = largest(begin);
    }
    least = std::move(next);
  }
  return least[count];
}

std::vector<double> sums_before(const std::vector<double>& pieces) {
  std::vector<double> sums{0};
  for (const double each : pieces) sums.push_back(sums.back() + each);
  return sums;
}

/// Where the parts begin, none of which costs more than `limit`, with the least bytes from part to part. `worth`: sums
/// of which each part has at least 1, or empty. Returns nothing where that cannot be.
std::vector<size_t> cheapest_cuts(const std::vector<double>& sums, const std::vector<int64_t>& crossing, size_t parts,
                                  double limit, const std::vector<double>& worth) {
  const size_t count = sums.size() - 1;
  std::vector<double> bytes(count + 1, kUnbounded);
  std::vector<std::vector<size_t>> from(parts, std::vector<size_t>(count + 1, 0));
  bytes[0] = 0;
  for (size_t part = 0; part < parts; ++part) {
    std::vector<double> next(count + 1, kUnbounded);
    const auto bytes_from = [&](size_t begin) {
      return bytes[begin] + (begin > 0 ? static_cast<double>(crossing[begin]) : 0);
    };
    std::deque<size_t> begins;  // of the last part, each with more bytes than the one before it
    size_t next_begin = part;
    for (size_t end = part + 1; end <= count; ++end) {
      for (; next_begin < end && (worth.empty() || worth[end] - worth[next_begin] >= 1); ++next_begin) {
        while (!begins.empty() && bytes_from(begins.back()) >= bytes_from(next_begin)) begins.pop_back();
        begins.push_back(next_begin);
      }
      while (!begins.empty() && sums[end] - sums[begins.front()] > limit) begins.pop_front();
      if (begins.empty() || bytes_from(begins.front()) == kUnbounded) continue;
      next[end] = bytes_from(begins.front());
      from[part][end] = begins.front();
    }
    bytes = std::move(next);
  }
  if (bytes[count] == kUnbounded) return {};
  std::vector<size_t> begins(parts);
  size_t end = count;
  for (size_t part = parts; part-- > 0;) end = begins[part] = from[part][end];
  return begins;
}

}  // namespace

std::vector<size_t> cut_by_cost(const std::vector<double>& seconds, const std::vector<int64_t>& crossing, int parts,
                                const std::vector<double>& worth) {
  const size_t count = seconds.size(), wanted = static_cast<size_t>(parts);
  if (count < wanted)
    fail(ErrorKind::usage, "{} stages want at least as many operations with weights before them, and there are {}",
         parts, count);
  const std::vector<double> sums = sums_before(seconds);
  const double limit = least_largest_part(sums, wanted) * (1 + kSlack);
  if (!worth.empty())
    if (std::vector<size_t> begins = cheapest_cuts(sums, crossing, wanted, limit, sums_before(worth)); !begins.empty())
      return begins;
  return cheapest_cuts(sums, crossing, wanted, limit, {});
}

std::vector<int> idle_ranks(const std::vector<bool>& has_work, const StagePlacement& placement) {
  std::vector<bool> is_busy(static_cast<size_t>(placement.ranks), false);
  for (int stage = 0; stage < placement.stages(); ++stage)
    if (has_work[static_cast<size_t>(stage)]) is_busy[static_cast<size_t>(placement.rank_of(stage))] = true;
  std::vector<int> idle;
  for (int rank = 0; rank < placement.ranks; ++rank)
    if (!is_busy[static_cast<size_t>(rank)]) idle.push_back(rank);
  return idle;
}

std::string describe_idle(const std::vector<int>& ranks) {
  constexpr size_t kFew = 8;  // that a line names
  if (ranks.empty()) return "";
  const std::string who = ranks.size() > kFew
                              ? fmt::format("{} ranks", ranks.size())
                              : fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
  return who + " of the pipeline would have next to nothing to compute";
}

StagedGraph cut_into_stages(const Graph& graph, const GradientOrigins& origins, const std::vector<ValueId>& wanted,
                            int stages, const CostModel& costs, int threads) {
  return Cutter(graph, origins, wanted, stages, costs, threads).run();
}

}  // namespace weft::passes
