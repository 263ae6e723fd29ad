#include "weft/step/data_parallel.h"

#include <algorithm>

#include "weft/graph/rewrite.h"
#include "weft/ops/ops.h"
#include "weft/spec/course.h"
#include "weft/step/local_steps.h"
#include "weft/step/optimizers/loss_scaling.h"

namespace weft::step {

bool may_defer_updates(const spec::RunSpec& spec) {
  return spec.virtual_ranks == 0 && !trains_apart(spec) && !spec::scales_loss(spec);
}

int64_t batches_per_exchange(const spec::RunSpec& spec) {
  if (spec.virtual_ranks > 0 || spec.balance.grains > 0 || spec.mesh.pipeline > 1 || trains_apart(spec)) return 0;
  int64_t most = 1;
  for (const spec::Stage& stage : spec::stages_of(spec)) most = std::max(most, stage.accumulate);
  return most;
}

Graph average_statistics(const Graph& graph) {
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id{static_cast<int32_t>(index)};
    const Node& node = graph.node(id);
    if (node.op->name != "running_average") {
      rewriter.copy(id);
      continue;
    }
    std::vector<ValueId> operands = rewriter.map(node.inputs);
    operands[1] = ops::all_reduce(rewriter.result(), operands[1], "mean", "all_reduce/" + graph.node_name(id));
    rewriter.replace(node.outputs[0],
                     rewriter.result().add(node.op->name, operands, node.attributes, graph.node_name(id)));
  }
  return rewriter.finish();
}

void add_stop(Graph& graph, int ranks) {
  const ValueId wish = graph.add_input(InputKind::scalar, kStop, {DType::f32, {}, {}});
  graph.add_output(kStop, ranks == 1 ? wish : ops::all_reduce(graph, wish, "sum", "stop.ranks"));
}

void add_own_gradient(Graph& graph, const std::vector<ValueId>& gradients) {
  ValueId last;
  for (const ValueId gradient : gradients) {
    if (graph.type(gradient).shape.rank() != 1) continue;
    if (!last.valid() || graph.value(last).producer.index < graph.value(gradient).producer.index) last = gradient;
  }
  if (last.valid()) graph.add_output(kOwnGradient, ops::reduce_sum(graph, last, {}, false, "own_gradient.sum"));
}

}  // namespace weft::step
