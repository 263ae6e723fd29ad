#include "weft/step/local_steps.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/error.h"
#include "weft/comm/exchange.h"
#include "weft/ops/ops.h"

namespace weft::step {

namespace {

bool has_slow_steps(const spec::AveragingSpec& spec) { return spec.slow_momentum > 0 || spec.slow_learning_rate != 1; }

/// States that a step changes, by name, as its graphs have them. Sums of gradients mean nothing between steps.
std::map<std::string, const GraphInput*> changed_states(const Graph& graph) {
  std::map<std::string, const GraphInput*> states;
  for (const StateUpdate& update : graph.updates())
    if (!update.state.starts_with(slot_name(kGradientSumSlot, "")))
      states[update.state] = graph.find_input(update.state);
  return states;
}

class AveragingBuilder {
 public:
  AveragingBuilder(const Graph& step, const spec::AveragingSpec& spec, int ranks)
      : graph_(step.registry(), step.name() + " averaging"), spec_(spec), ranks_(ranks) {}

  void add_state(const std::string& name, InputKind kind, const TensorType& type, bool is_weight) {
    check(type.dtype == DType::f32, "a state that ranks average is no f32");
    const bool is_slow = is_weight && has_slow_steps(spec_);
    if (ranks_ == 1 && !is_slow) return;
    const ValueId state = graph_.add_input(kind, name, {DType::f32, type.shape, {}});
    const ValueId mean = ranks_ == 1 ? state : ops::all_reduce(graph_, state, "mean", "all_reduce/" + name);
    const ValueId next = is_slow ? step_slowly(name, type.shape, mean) : mean;
    graph_.add_update(name, replace(state, next, "mean/" + name));
  }

  Graph finish() { return std::move(graph_); }
  const std::vector<SlotSpec>& slots() const { return slots_; }

 private:
  ValueId step_slowly(const std::string& name, const Shape& shape, ValueId mean) {
    const ValueId anchor = slot("anchor", name, shape, name), momentum = slot("slow_momentum", name, shape, "");
    const ValueId way = ops::multiply(graph_, ops::subtract(graph_, anchor, mean), scalar(kInverseRoundRate));
    const ValueId faster =
        ops::add(graph_, ops::multiply_scalar(graph_, momentum, spec_.slow_momentum), way, "slow/" + name);
    const ValueId rate = ops::multiply_scalar(graph_, scalar(kRoundRate), spec_.slow_learning_rate);
    const ValueId next = ops::subtract(graph_, anchor, ops::multiply(graph_, faster, rate), "next/" + name);
    graph_.add_update(slot_name("slow_momentum", name), replace(momentum, faster, "momentum/" + name));
    graph_.add_update(slot_name("anchor", name), replace(anchor, next, "anchor/" + name));
    return next;
  }

  ValueId slot(const std::string& slot, const std::string& parameter, const Shape& shape, const std::string& copy_of) {
    slots_.push_back({slot_name(slot, parameter), {DType::f32, shape, {}}, copy_of});
    return graph_.add_input(InputKind::state, slots_.back().name, slots_.back().type);
  }

  ValueId scalar(const char* name) {
    const GraphInput* input = graph_.find_input(name);
    return input != nullptr ? input->value : graph_.add_input(InputKind::scalar, name, {DType::f32, {}, {}});
  }

  ValueId replace(ValueId state, ValueId next, const std::string& name) {
    return ops::blend_update(graph_, state, next, ops::constant(graph_, {}, 0), ops::constant(graph_, {}, 1), name);
  }

  Graph graph_;
  const spec::AveragingSpec& spec_;
  const int ranks_;
  std::vector<SlotSpec> slots_;
};

}  // namespace

AveragingGraphs build_averaging(const Graph& step, const Graph* update, const spec::RunSpec& spec,
                                const std::vector<TrainedParameter>& trained, int ranks) {
  AveragingBuilder states(step, spec.averaging, ranks);
  std::optional<AveragingBuilder> weights;
  if (spec.averaging.states_every > 1) weights.emplace(step, spec.averaging, ranks);
  for (const Graph* graph : {&step, update}) {
    if (graph == nullptr) continue;
    for (const auto& [name, input] : changed_states(*graph)) {
      const bool is_weight = std::any_of(trained.begin(), trained.end(),
                                         [&name = name](const auto& parameter) { return parameter.name == name; });
      states.add_state(name, input->kind, graph->type(input->value), is_weight);
      if (is_weight && weights) weights->add_state(name, input->kind, graph->type(input->value), is_weight);
    }
  }
  AveragingGraphs graphs{.states = states.finish(), .slots = states.slots()};
  if (weights) graphs.weights = weights->finish();
  return graphs;
}

int64_t adapted_period(const spec::AveragingSpec& spec, const AveragingState& state, double loss) {
  if (!spec.adaptive || state.first_loss <= 0 || !(loss >= 0)) return state.period;
  const auto wanted =
      static_cast<int64_t>(std::ceil(std::sqrt(loss / state.first_loss) * static_cast<double>(spec.period)));
  const int64_t next = wanted < state.period ? wanted : (state.period + 1) / 2;
  return std::clamp<int64_t>(next, 1, spec.period);
}

Round::Wishes Round::agree(const Wishes& own) {
  if (ranks_ == nullptr) return own;
  std::vector<double> numbers{own.stop ? 1.0 : 0.0, own.exchange ? 1.0 : 0.0};
  const size_t begin = numbers.size();
  for (const Step& step : steps_) {
    numbers.push_back(step.metrics.loss);
    numbers.push_back(step.correct);
  }
  comm::all_reduce_sum(*ranks_, numbers, "losses since the last mean of the weights", {.meter = &meter_});
  for (size_t at = 0; at < steps_.size(); ++at) {
    steps_[at].metrics.loss = numbers[begin + 2 * at] / ranks_->size();
    steps_[at].correct = numbers[begin + 2 * at + 1];
  }
  return {.stop = numbers[0] > 0, .exchange = numbers[1] > 0};
}

double Round::loss() const {
  double sum = 0;
  for (const Step& step : steps_) sum += step.metrics.loss;
  return sum / static_cast<double>(steps_.size());
}

double Round::rate() const {
  double most = 0;
  for (const Step& step : steps_) most = std::max(most, step.metrics.learning_rate);
  return most;
}

}  // namespace weft::step
