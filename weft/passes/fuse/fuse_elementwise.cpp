#include "weft/passes/fuse/fuse_elementwise.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>

#include "weft/ops/fused.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

constexpr size_t kMostOperands = 8;
constexpr size_t kMostInstructions = 24;
constexpr size_t kMostResults = 2;  // as many as fused_elementwise can compute in place
/// Nodes between an intermediate and the end of its group over which operands may be kept alive in its stead.
constexpr int32_t kNear = 16;

struct Group {
  std::vector<NodeId> members;  // in order; the last one is the root, where the group is computed
  std::vector<ValueId> operands;
  std::vector<ValueId> results;       // the root's first
  std::map<ValueId, NodeId> casts{};  // of operands in f32 from integers that are read in their stead
};

class ElementwiseFuser {
 public:
  explicit ElementwiseFuser(const Graph& graph)
      : graph_(graph), users_(find_users(graph)), is_result_(find_results(graph)) {
    for (size_t index = 0; index < graph.nodes().size(); ++index) instructions_.push_back(instruction_of(index));
    is_grouped_.assign(graph.nodes().size(), false);
  }

  Graph run() {
    std::unordered_map<int32_t, Group> by_root;
    for (size_t index = graph_.nodes().size(); index-- > 0;) {
      if (!instructions_[index] || is_grouped_[index]) continue;
      if (auto group = grow(node_at(index))) {
        for (const NodeId member : group->members) is_grouped_[index_of(member)] = true;
        for (const auto& [operand, cast] : group->casts) is_grouped_[index_of(cast)] = true;
        by_root.emplace(static_cast<int32_t>(index), *std::move(group));
      }
    }
    Rewriter rewriter(graph_);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      if (const auto found = by_root.find(static_cast<int32_t>(index)); found != by_root.end())
        emit(rewriter, found->second);
      else if (!is_grouped_[index])
        rewriter.copy(node_at(index));
    }
    return rewriter.finish();
  }

 private:
  /// Its scalar instruction, where a node can be part of a group.
  std::optional<ops::ScalarInstruction> instruction_of(size_t index) const {
    const Node& node = graph_.nodes()[index];
    ops::ScalarInstruction instruction{};
    if (node.op->layout_rule != LayoutRule::elementwise || node.outputs.size() != 1 ||
        !ops::scalar_instruction(node.op->name, node.attributes, instruction))
      return std::nullopt;
    const TensorType& result = graph_.type(node.outputs[0]);
    bool fits = is_floating(result.dtype) && result.dtype != DType::f64 && result.layout.is_plain();
    for (const ValueId input : node.inputs)
      fits = fits && graph_.type(input).dtype == result.dtype && graph_.type(input).layout.is_plain();
    return fits ? std::optional(instruction) : std::nullopt;
  }

  ValueId output_of(NodeId id) const { return graph_.node(id).outputs[0]; }

  /// The largest group that ends in `root`; nullopt where it would be the root alone.
  std::optional<Group> grow(NodeId root) const {
    const Shape& shape = graph_.shape(output_of(root));
    std::set<NodeId> members;
    std::set<ValueId> operands;
    std::vector<ValueId> results{output_of(root)};
    std::priority_queue<NodeId> candidates;  // the latest first: by then all its possible users have been decided
    const auto add_operands = [&](NodeId member) {
      for (const ValueId input : graph_.node(member).inputs)
        if (operands.insert(input).second && graph_.value(input).producer.valid())
          candidates.push(graph_.value(input).producer);
    };
    const auto join = [&](NodeId member) {
      members.insert(member);
      operands.erase(output_of(member));
      add_operands(member);
      const NodeId twin = twin_of(member, root, members);
      if (!twin.valid() || results.size() == kMostResults || members.size() == kMostInstructions) return;
      members.insert(twin);  // reads nothing new
      results.push_back(output_of(twin));
    };
    join(root);
    while (!candidates.empty() && members.size() < kMostInstructions) {
      const NodeId candidate = candidates.top();
      candidates.pop();
      if (!instructions_[index_of(candidate)] || is_grouped_[index_of(candidate)]) continue;
      const ValueId value = output_of(candidate);
      if (graph_.shape(value) != shape) continue;
      const bool is_read_outside = reads_outside(value, members);
      if (is_read_outside && (results.size() == kMostResults || !may_be_result(value, members, root))) continue;
      size_t new_operands = 0, new_full_operands = 0;
      const std::set<ValueId> inputs(graph_.node(candidate).inputs.begin(), graph_.node(candidate).inputs.end());
      for (const ValueId input : inputs) {
        if (operands.contains(input)) continue;
        ++new_operands;
        if (graph_.shape(input) == shape) ++new_full_operands;
      }
      if (operands.size() - 1 + new_operands > kMostOperands) continue;
      if (root.index - candidate.index > kNear && new_full_operands > 1) continue;
      const NodeId next{candidate.index + 1};  // with which it shares a sweep, where it is its twin
      if (!members.contains(next) && is_twin(candidate, next) && !is_grouped_[index_of(next)]) continue;
      if (is_read_outside) results.push_back(value);
      join(candidate);
    }
    if (members.size() < 2) return std::nullopt;
    Group group{{members.begin(), members.end()}, {}, std::move(results)};
    collect_operands(group);
    // The first operand gives the shape of the results.
    const auto full = std::find_if(group.operands.begin(), group.operands.end(),
                                   [&](ValueId operand) { return graph_.shape(operand) == shape; });
    if (full == group.operands.end()) return std::nullopt;
    std::rotate(group.operands.begin(), full, full + 1);
    for (const ValueId operand : group.operands)
      if (is_cast_for(members, operand)) group.casts.emplace(operand, graph_.value(operand).producer);
    return group;
  }

  /// Whether a cast makes the operand f32 from i32, and nobody but the members reads it.
  bool is_cast_for(const std::set<NodeId>& members, ValueId operand) const {
    const Node* node = graph_.producer(operand);
    if (node == nullptr || node->op->name != "cast" || reads_outside(operand, members)) return false;
    const TensorType &from = graph_.type(node->inputs[0]), &to = graph_.type(operand);
    return from.dtype == DType::i32 && to.dtype == DType::f32 && from.layout.is_plain();
  }

  /// The node before a member that reads nothing but what that reads, where it can be computed as late as the root for
  /// others: two functions of the same numbers. Invalid where there is none.
  NodeId twin_of(NodeId member, NodeId root, const std::set<NodeId>& members) const {
    const NodeId twin{member.index - 1};
    if (!twin.valid() || is_grouped_[index_of(twin)] || !is_twin(twin, member)) return {};
    const ValueId value = output_of(twin);
    return reads_outside(value, members) && may_be_result(value, members, root) ? twin : NodeId{};
  }

  /// Whether both may be in a group, and the first reads nothing but what the second reads.
  bool is_twin(NodeId first, NodeId second) const {
    if (index_of(second) >= instructions_.size() || !instructions_[index_of(first)] || !instructions_[index_of(second)])
      return false;
    const std::vector<ValueId>& read = graph_.node(second).inputs;
    for (const ValueId input : graph_.node(first).inputs)
      if (std::find(read.begin(), read.end(), input) == read.end()) return false;
    return graph_.type(output_of(first)) == graph_.type(output_of(second));
  }

  bool reads_outside(ValueId value, const std::set<NodeId>& members) const {
    bool outside = is_result_[index_of(value)];
    for (const NodeId user : users_[index_of(value)]) outside = outside || !members.contains(user);
    return outside;
  }

  /// Whether a value that is read outside may be computed as late as the root.
  bool may_be_result(ValueId value, const std::set<NodeId>& members, NodeId root) const {
    for (const NodeId user : users_[index_of(value)])
      if (!members.contains(user) && user < root) return false;
    return root.index - graph_.value(value).producer.index <= kNear;
  }

  /// In the order in which the members read them.
  void collect_operands(Group& group) const {
    std::set<ValueId> seen;
    for (const NodeId member : group.members) seen.insert(output_of(member));
    for (const NodeId member : group.members)
      for (const ValueId input : graph_.node(member).inputs)
        if (seen.insert(input).second) group.operands.push_back(input);
  }

  void emit(Rewriter& rewriter, const Group& group) const {
    std::unordered_map<ValueId, int> slots;
    for (const ValueId operand : group.operands) slots.emplace(operand, static_cast<int>(slots.size()));
    std::vector<ops::ScalarInstruction> program;
    for (const NodeId member : group.members) {
      ops::ScalarInstruction instruction = *instructions_[index_of(member)];
      const auto& inputs = graph_.node(member).inputs;
      instruction.a = slots.at(inputs[0]);
      if (inputs.size() > 1) instruction.b = slots.at(inputs[1]);
      if (inputs.size() > 2) instruction.c = slots.at(inputs[2]);
      slots.emplace(output_of(member), static_cast<int>(slots.size()));
      program.push_back(instruction);
    }
    std::vector<int64_t> results;
    for (const ValueId result : group.results) results.push_back(slots.at(result));
    std::vector<ValueId> operands;
    for (const ValueId operand : group.operands) {
      const auto cast = group.casts.find(operand);
      operands.push_back(cast == group.casts.end() ? operand : graph_.node(cast->second).inputs[0]);
    }
    const auto outputs = rewriter.result().add_node("fused_elementwise", rewriter.map(operands),
                                                    {{"program", ops::print_program(program)}, {"results", results}},
                                                    graph_.node_name(group.members.back()));
    for (size_t index = 0; index < outputs.size(); ++index) rewriter.replace(group.results[index], outputs[index]);
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
  std::vector<std::optional<ops::ScalarInstruction>> instructions_;
  std::vector<bool> is_grouped_;
};

}  // namespace

Graph fuse_elementwise(const Graph& graph) { return ElementwiseFuser(graph).run(); }

}  // namespace weft::passes
