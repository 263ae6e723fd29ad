#include "weft/simulate/step_program.h"

#include <algorithm>
#include <map>
#include <optional>

#include "weft/base/error.h"
#include "weft/graph/accumulation.h"
#include "weft/graph/collective.h"
#include "weft/ops/define.h"

namespace weft::simulate {

namespace {

std::optional<Collective> kind_of(const Node& node) {
  const CollectiveOps* const ops = find_collective(node);
  if (ops == nullptr) return std::nullopt;
  const std::string whole = ops->whole;
  if (whole == kAllReduce) return Collective::all_reduce;
  if (whole == kAllGather) return Collective::all_gather;
  if (whole == kReduceScatter) return Collective::reduce_scatter;
  if (whole == kAllToAll) return Collective::all_to_all;
  return Collective::broadcast;  // and a reduction to a root, which is one backwards
}

class Maker {
 public:
  Maker(const CompiledStep& step, const CostModel& costs, int ranks)
      : step_(step),
        costs_(costs),
        ranks_(ranks),
        is_of_last_batch_(completing_input(step.graph) < 0 ? std::vector<bool>(step.graph.nodes().size(), true)
                                                           : find_completing(step.graph)) {
    program_.state_bytes = static_cast<double>(step.plan.state_bytes);
    program_.arena_bytes = static_cast<double>(step.plan.arena_bytes);
    program_.batch_bytes = static_cast<double>(step.plan.batch_bytes + step.plan.constant_bytes);
  }

  StepProgram make() {
    const std::vector<PlannedNode>& steps = step_.plan.steps;
    // Those that are deferred stand last, by the step of the next run before which they run.
    const auto first_deferred = static_cast<size_t>(step_.plan.deferred_from);
    size_t deferred = first_deferred;
    for (size_t index = 0; index < first_deferred; ++index) {
      for (; deferred < steps.size() && steps[deferred].before == static_cast<int>(index); ++deferred)
        add(steps[deferred], /*is_next_run=*/true);
      add(steps[index], /*is_next_run=*/false);
    }
    for (; deferred < steps.size(); ++deferred) add(steps[deferred], /*is_next_run=*/true);
    return std::move(program_);
  }

 private:
  void add(const PlannedNode& planned, bool is_next_run) {
    const Node& node = step_.graph.node(planned.node);
    const std::string& name = step_.graph.node_name(planned.node);
    const std::optional<Collective> kind = kind_of(node);
    if (!kind) {
      const double seconds = costs_.seconds(signature_of(step_.graph, planned.node), step_.plan.threads);
      program_.flops += static_cast<double>(planned.flops);
      if (seconds <= 0) return;
      program_.compute_seconds += seconds;
      program_.items.push_back({.name = name,
                                .work = node.op->work.empty() ? std::string("elementwise") : node.op->work,
                                .seconds = seconds,
                                .is_next_run = is_next_run});
      return;
    }
    if (is_collective_wait(node)) {
      program_.items.push_back({.kind = StepItem::Kind::wait,
                                .name = name,
                                .work = "communication",
                                .collective = number_of(node, *kind),
                                .is_next_run = is_next_run});
      return;
    }
    const int number = is_collective_start(node) ? number_of(node, *kind) : next_of_own();
    describe(number, node, *kind, name);
    program_.collectives[static_cast<size_t>(number)].is_of_last_batch =
        is_of_last_batch_[static_cast<size_t>(planned.node.index)];
    program_.items.push_back({.kind = StepItem::Kind::begin,
                              .name = name,
                              .work = "communication",
                              .collective = number,
                              .is_next_run = is_next_run});
    if (!is_collective_start(node))
      program_.items.push_back({.kind = StepItem::Kind::wait,
                                .name = name,
                                .work = "communication",
                                .collective = number,
                                .is_next_run = is_next_run});
  }

  /// Halves carry a number that is unique among those of their kind.
  int number_of(const Node& node, Collective kind) {
    const auto [found, is_new] = by_number_.try_emplace({kind, node.attributes.integer("number")},
                                                        static_cast<int>(program_.collectives.size()));
    if (is_new) program_.collectives.push_back({.kind = kind});
    return found->second;
  }
  int next_of_own() {
    program_.collectives.push_back({});
    return static_cast<int>(program_.collectives.size()) - 1;
  }

  void describe(int number, const Node& node, Collective kind, const std::string& name) {
    StepCollective& collective = program_.collectives[static_cast<size_t>(number)];
    collective.kind = kind;
    collective.tensors = node.attributes.has("tensors") ? node.attributes.text("tensors") : name;
    for (const ValueId input : node.inputs) {
      const double bytes = static_cast<double>(step_.graph.type(input).bytes());
      collective.bytes += kind == Collective::all_gather ? ranks_ * bytes : bytes;
    }
  }

  const CompiledStep& step_;
  const CostModel& costs_;
  const int ranks_;
  const std::vector<bool> is_of_last_batch_;  // per node
  StepProgram program_;
  std::map<std::pair<Collective, int64_t>, int> by_number_;
};

}  // namespace

bool StepItem::is_update() const { return work == ops::work::kUpdates; }

double StepProgram::seconds_of(int batches) const {
  double seconds = 0;
  for (const StepItem& item : items) seconds += item.seconds * (item.is_update() ? 1 : batches);
  return seconds;
}

StepProgram step_program(const CompiledStep& step, const CostModel& costs, int ranks) {
  return Maker(step, costs, ranks).make();
}

std::vector<std::pair<std::string, double>> seconds_by_work(const StepProgram& program) {
  std::map<std::string, double> all;
  for (const StepItem& item : program.items)
    if (item.kind == StepItem::Kind::compute) all[item.work] += item.seconds;
  std::vector<std::pair<std::string, double>> sorted(all.begin(), all.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

}  // namespace weft::simulate
