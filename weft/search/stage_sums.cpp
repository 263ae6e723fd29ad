#include "weft/search/stage_sums.h"

#include <algorithm>

#include "weft/graph/collective.h"
#include "weft/passes/support/rebuild.h"
#include "weft/step/experts.h"

namespace weft::search {

namespace {

class Sums {
 public:
  Sums(const StageQuestion& of, ScaledTimes& times, double file_rate)
      : q_(of), graph_(of.graph.graph()), users_(find_users(graph_)), times_(times), file_rate_(file_rate) {
    costs_.stages.resize(static_cast<size_t>(of.cut.stages));
    costs_.has_work = of.cut.has_work;
  }

  StagedCosts run() {
    find_roots();
    for (size_t index = 0; index < graph_.nodes().size(); ++index) add_node(index);
    add_states();
    add_kept();
    group_blocks();
    costs_.working_bytes = std::max(0.0, peak_bytes() - kept_bytes_);
    find_rows_layers();
    return std::move(costs_);
  }

 private:
  int32_t owner(size_t index) const { return q_.nodes.owner[index]; }
  bool is_forward(size_t index) const {
    return owner(index) != kUpdate && static_cast<size_t>(owner(index)) < q_.micro.origins.forward_nodes;
  }
  bool is_backward(size_t index) const { return owner(index) != kUpdate && !is_forward(index); }
  /// What nobody in particular computes, the first stage does here.
  size_t stage_of(size_t index) const {
    const int stage = q_.cut.stage[static_cast<size_t>(owner(index))];
    return stage == passes::kNoStage ? 0 : static_cast<size_t>(stage);
  }
  int block_of(size_t index) const { return q_.block_of[static_cast<size_t>(owner(index))]; }
  double bytes(ValueId value) const { return static_cast<double>(q_.graph.bytes(value, q_.rows)); }
  size_t root(ValueId value) const { return roots_[static_cast<size_t>(value.index)]; }

  /// The value whose memory a view is.
  void find_roots() {
    for (size_t value = 0; value < graph_.values().size(); ++value) roots_.push_back(value);
    for (const Node& node : graph_.nodes())
      if (node.op->is_view) roots_[static_cast<size_t>(node.outputs[0].index)] = root(node.inputs[0]);
  }

  void add_node(size_t index) {
    const Node& node = graph_.nodes()[index];
    if (owner(index) == kUpdate) {
      update_seconds_ += find_collective(node) == nullptr ? times_.seconds(passes::node_at(index), q_.rows) : 0;
      return;
    }
    StageCost& stage = costs_.stages[stage_of(index)];
    const Work work = is_forward(index) ? Work::forward
                      : q_.cut.work[static_cast<size_t>(owner(index))] == passes::PipelineWork::backward_inputs
                          ? Work::backward_inputs
                          : Work::backward_weights;
    if (const CollectiveOps* ops = find_collective(node)) {
      int64_t operand = 0;
      for (const ValueId input : node.inputs) operand += q_.graph.bytes(input, q_.rows);
      ++stage.exchanges[{work, axis_of_exchange(node), ops->whole, operand}];
      return;
    }
    const double seconds = times_.seconds(passes::node_at(index), q_.rows);
    stage.seconds[static_cast<size_t>(work)] += seconds;
    if (work == Work::forward && block_of(index) >= 0)
      blocks_[{stage_of(index), block_of(index)}].recompute_seconds += seconds;
  }

  /// Weights are where they are read first, and on each other stage that reads them.
  void add_states() {
    std::vector<double> gradients;
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::parameter) continue;
      std::set<size_t> stages;
      for (const NodeId user : users_[static_cast<size_t>(input.value.index)])
        if (is_forward(static_cast<size_t>(user.index))) stages.insert(stage_of(static_cast<size_t>(user.index)));
      const double size = bytes(input.value);
      const auto& sharding = graph_.sharding(input.value);
      costs_.all_weight_bytes += sharding ? 4.0 * static_cast<double>(sharding->whole.elements()) : size;
      const bool is_trained = q_.nodes.trained.contains(input.name),
                 is_expert = sharding && step::is_part_along_data(*sharding);
      const auto known = q_.nodes.slot_bytes.find(input.name);
      const double slots = known == q_.nodes.slot_bytes.end() ? 0 : known->second;
      for (const size_t at : stages) {
        StageCost& stage = costs_.stages[at];
        stage.weight_bytes += size;
        stage.slot_bytes += slots;
        if (is_trained) stage.gradient_bytes += size;
        if (!is_expert) continue;
        stage.expert_weight_bytes += size;
        stage.expert_slot_bytes += slots;
        if (is_trained) stage.expert_gradient_bytes += size;
      }
      if (is_trained && !is_expert) gradients.push_back(size);
    }
    std::sort(gradients.rbegin(), gradients.rend());
    for (size_t at = 0; at < std::min<size_t>(4, gradients.size()); ++at)
      costs_.largest_gradients_bytes += gradients[at];
    double all = 0;
    for (const StageCost& stage : costs_.stages) all += stage.gradient_bytes;
    for (StageCost& stage : costs_.stages)
      stage.update_seconds = all > 0 ? update_seconds_ * stage.gradient_bytes / all : 0;
  }

  /// Of what forward nodes make: what the backward part reads, and what other blocks and stages read.
  void add_kept() {
    std::vector<bool> is_read_back(graph_.values().size(), false), is_read_outside(graph_.values().size(), false);
    std::vector<std::set<size_t>> readers(graph_.values().size());
    std::vector<int64_t> producer(graph_.values().size(), -1);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const Node& node = graph_.nodes()[index];
      if (!node.op->is_view)
        for (const ValueId output : node.outputs) producer[root(output)] = static_cast<int64_t>(index);
      if (owner(index) == kUpdate || node.op->is_view) continue;
      for (const ValueId input : node.inputs) {
        const int64_t from = producer[root(input)];
        if (from < 0 || !is_forward(static_cast<size_t>(from))) continue;
        if (is_backward(index)) {
          is_read_back[root(input)] = true;
          continue;
        }
        const auto made = static_cast<size_t>(from);
        if (block_of(index) != block_of(made)) is_read_outside[root(input)] = true;
        if (stage_of(index) != stage_of(made)) readers[root(input)].insert(stage_of(index));
      }
    }
    for (size_t value = 0; value < graph_.values().size(); ++value) {
      if (producer[value] < 0 || (!is_read_back[value] && !is_read_outside[value])) continue;
      const auto made = static_cast<size_t>(producer[value]);
      if (!is_forward(made)) continue;
      const double size = bytes(ValueId{static_cast<int32_t>(value)});
      costs_.stages[stage_of(made)].sent_bytes += size * static_cast<double>(readers[value].size());
      BlockClass& block = blocks_[{stage_of(made), block_of(made)}];
      block.kept_bytes += size;
      if (is_read_outside[value]) block.boundary_bytes += size;
      kept_bytes_ += size;
    }
  }

  void group_blocks() {
    for (const auto& [place, block] : blocks_) {
      std::vector<BlockClass>& known = costs_.stages[place.first].blocks;
      BlockClass one = block;
      if (place.second < 0) one.boundary_bytes = one.kept_bytes;  // of no block: not computed twice
      if (one.kept_bytes <= 0) continue;
      if (file_rate_ > 0) one.file_seconds = 2 * one.kept_bytes / file_rate_;
      const auto equal = std::find_if(known.begin(), known.end(), [&](BlockClass other) {
        other.count = 1;
        return other == one;
      });
      if (equal == known.end())
        known.push_back(one);
      else
        ++equal->count;
    }
  }

  /// Of values of the micro-batch, in the order of its nodes. A gradient of a weight is used up where it is made.
  double peak_bytes() const {
    std::vector<size_t> last(graph_.values().size(), 0);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (owner(index) == kUpdate) continue;
      for (const ValueId output : graph_.nodes()[index].outputs) last[root(output)] = index;
      for (const ValueId input : graph_.nodes()[index].inputs) last[root(input)] = index;
    }
    std::vector<std::vector<size_t>> dying(graph_.nodes().size());
    std::vector<bool> is_made(graph_.values().size(), false);
    double now = 0, peak = 0;
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (owner(index) == kUpdate) continue;
      for (const ValueId output : graph_.nodes()[index].outputs) {
        if (root(output) != static_cast<size_t>(output.index)) continue;
        now += bytes(output);
        dying[last[root(output)]].push_back(root(output));
      }
      peak = std::max(peak, now);
      for (const size_t value : dying[index]) now -= bytes(ValueId{static_cast<int32_t>(value)});
    }
    return peak;
  }

  /// Products whose result is the whole gradient of a weight (passes/ranks/late_multiply.h).
  void find_rows_layers() {
    for (const step::TrainedParameter& parameter : q_.micro.trained) {
      const std::string& name = q_.micro.graph.value(parameter.gradient).name;
      const NodeId id = q_.graph.find_node(name);
      if (!id.valid()) continue;
      const Node& node = graph_.node(id);
      if (node.op->name != "matmul" || !node.attributes.boolean("transpose_a") ||
          node.attributes.boolean("transpose_b") || graph_.shape(node.inputs[0]).rank() != 2 ||
          graph_.shape(node.inputs[1]).rank() != 2)
        continue;
      costs_.stages[stage_of(static_cast<size_t>(id.index))].rows_layers.push_back(
          {.weight_bytes = q_.graph.bytes(node.outputs[0], q_.rows),
           .rows_bytes = {q_.graph.bytes(node.inputs[0], q_.rows), q_.graph.bytes(node.inputs[1], q_.rows)},
           .product_seconds = times_.seconds(id, q_.rows)});
    }
  }

  const StageQuestion& q_;
  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  ScaledTimes& times_;
  const double file_rate_;
  StagedCosts costs_;
  std::vector<size_t> roots_;
  std::map<std::pair<size_t, int>, BlockClass> blocks_;  // by stage and block
  double update_seconds_ = 0, kept_bytes_ = 0;
};

}  // namespace

StagedCosts sum_up_stages(const StageQuestion& of, ScaledTimes& times, double file_bytes_per_second) {
  return Sums(of, times, file_bytes_per_second).run();
}

}  // namespace weft::search
