#include "weft/plan/deferral.h"

#include <algorithm>

#include "weft/graph/collective.h"
#include "weft/graph/kept.h"
#include "weft/graph/offloaded.h"
#include "weft/plan/execution_order.h"

namespace weft {

namespace {

class Deferral {
 public:
  Deferral(const Graph& graph, const StorageMap& storage, const std::vector<NodeId>& order)
      : graph_(graph),
        storage_(storage),
        order_(order),
        successors_(find_successors(graph, storage)),
        is_deferred_(graph.nodes().size(), false),
        before_(graph.nodes().size(), -1) {}

  DeferredOrder run() {
    mark();
    if (!may_wait()) return {order_, std::vector<int>(order_.size(), -1)};
    mark_what_only_they_read();
    bound_by_touches();
    DeferredOrder result;
    std::vector<NodeId> last;
    for (const NodeId id : order_) (is_deferred_[at(id)] ? last : result.order).push_back(id);
    for (size_t index = last.size(); index-- > 0;) {
      int& before = before_[at(last[index])];
      for (const int32_t successor : successors_[at(last[index])])
        before = std::min(before, before_[static_cast<size_t>(successor)]);
    }
    std::stable_sort(last.begin(), last.end(), [&](NodeId a, NodeId b) { return before_[at(a)] < before_[at(b)]; });
    result.order.insert(result.order.end(), last.begin(), last.end());
    for (const NodeId id : result.order) result.before.push_back(before_[at(id)]);
    return result;
  }

 private:
  static size_t at(NodeId id) { return static_cast<size_t>(id.index); }

  void mark() {
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (node.op->name == kAllReduceWait && is_deferred(node)) is_deferred_[at(id)] = true;
      if (!is_deferred_[at(id)]) continue;
      for (const int32_t successor : successors_[at(id)]) is_deferred_[static_cast<size_t>(successor)] = true;
    }
  }

  bool may_wait() const {
    std::vector<bool> is_read_after(graph_.values().size(), false);
    for (const GraphOutput& output : graph_.outputs()) is_read_after[static_cast<size_t>(output.value.index)] = true;
    for (const int32_t update : storage_.copied_updates)
      is_read_after[static_cast<size_t>(graph_.updates()[static_cast<size_t>(update)].value.index)] = true;
    for (const NodeId id : order_) {
      if (!is_deferred_[at(id)]) continue;
      const Node& node = graph_.node(id);
      if (is_store(node) || is_load(node) || is_kept(node)) return false;
      if (is_collective(node) && !is_deferred(node)) return false;
      for (const ValueId output : node.outputs)
        if (is_read_after[static_cast<size_t>(output.index)]) return false;
    }
    return true;
  }

  /// What is made of scalars for deferred nodes alone, such as corrections of a bias, would else have to be kept from
  /// the beginning of the next run.
  void mark_what_only_they_read() {
    std::vector<bool> is_of_scalars(graph_.nodes().size(), false), is_result(graph_.values().size(), false);
    for (const GraphOutput& output : graph_.outputs()) is_result[static_cast<size_t>(output.value.index)] = true;
    for (const StateUpdate& update : graph_.updates()) is_result[static_cast<size_t>(update.value.index)] = true;
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      is_of_scalars[at(id)] = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
        const NodeId producer = graph_.value(input).producer;
        if (producer.valid()) return static_cast<bool>(is_of_scalars[at(producer)]);
        const auto is_it = [&](const GraphInput& one) { return one.value == input; };
        const auto found = std::find_if(graph_.inputs().begin(), graph_.inputs().end(), is_it);
        return found != graph_.inputs().end() && found->kind == InputKind::scalar;
      });
    }
    for (size_t index = order_.size(); index-- > 0;) {
      const NodeId id = order_[index];
      const auto& successors = successors_[at(id)];
      const auto& outputs = graph_.node(id).outputs;
      if (!is_of_scalars[at(id)] || successors.empty() || is_kept(graph_.node(id))) continue;
      if (std::any_of(outputs.begin(), outputs.end(),
                      [&](ValueId v) { return is_result[static_cast<size_t>(v.index)]; }))
        continue;
      is_deferred_[at(id)] = std::all_of(successors.begin(), successors.end(),
                                         [&](int32_t s) { return is_deferred_[static_cast<size_t>(s)]; });
    }
  }

  /// Sets before_ of each deferred node to the first other one that touches what it writes, or writes what it reads. A
  /// kept copy is not made anew in a run that has something to finish.
  void bound_by_touches() {
    int count = 0;
    for (const NodeId id : order_) count += is_deferred_[at(id)] ? 0 : 1;
    std::vector<int> touched(storage_.root.size(), count), written(storage_.root.size(), count);
    int place = 0;
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (is_deferred_[at(id)]) continue;
      const auto note = [&](std::vector<int>& first, ValueId value) {
        int& step = first[static_cast<size_t>(storage_.storage(value))];
        step = std::min(step, place);
      };
      if (!is_kept(node) && !node.op->is_view) {
        for (const ValueId input : node.inputs) note(touched, input);
        for (const ValueId output : node.outputs) {
          note(touched, output);
          note(written, output);
        }
      }
      ++place;
    }
    for (const NodeId id : order_) {
      if (!is_deferred_[at(id)]) continue;
      int& before = before_[at(id)];
      before = count;
      const Node& node = graph_.node(id);
      for (const ValueId output : node.outputs)
        before = std::min(before, touched[static_cast<size_t>(storage_.storage(output))]);
      for (const ValueId input : node.inputs)
        before = std::min(before, written[static_cast<size_t>(storage_.storage(input))]);
    }
  }

  const Graph& graph_;
  const StorageMap& storage_;
  const std::vector<NodeId>& order_;
  const std::vector<std::vector<int32_t>> successors_;
  std::vector<bool> is_deferred_;  // per node
  std::vector<int> before_;        // per node
};

}  // namespace

DeferredOrder defer(const Graph& graph, const StorageMap& storage, const std::vector<NodeId>& order) {
  const auto is_marked = [](const Node& node) { return node.op->name == kAllReduceWait && is_deferred(node); };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_marked))
    return {order, std::vector<int>(order.size(), -1)};
  return Deferral(graph, storage, order).run();
}

std::vector<size_t> order_of_run(const Plan& plan) {
  std::vector<size_t> order;
  const auto end = static_cast<size_t>(plan.deferred_from);
  size_t left = end;
  for (size_t index = 0; index <= end; ++index) {
    for (; left < plan.steps.size() && static_cast<size_t>(plan.steps[left].before) <= index; ++left)
      order.push_back(left);
    if (index < end) order.push_back(index);
  }
  return order;
}

}  // namespace weft
