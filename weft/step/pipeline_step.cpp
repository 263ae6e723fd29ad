#include "weft/step/pipeline_step.h"

#include <algorithm>
#include <set>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/graph/collective.h"
#include "weft/graph/text.h"
#include "weft/ops/ops.h"
#include "weft/step/data_parallel.h"
#include "weft/step/experts.h"
#include "weft/step/micro_batches.h"
#include "weft/step/placed_update.h"
#include "weft/step/sharded_states.h"
#include "weft/step/synchronised_norm.h"
#include "weft/step/tensor_parallel.h"

namespace weft::step {

namespace {

/// Of the update's graph.
std::string name_of_sum(const std::string& parameter) { return slot_name(kMicroSumSlot, parameter); }

/// What ranks along the axis data reduce in each micro-batch, they may as well reduce once a step.
std::map<std::string, std::string> take_reductions_out(Graph& graph) {
  std::map<std::string, std::string> reductions;  // by output
  const std::vector<GraphOutput> outputs = graph.outputs();
  graph.clear_outputs();
  for (const GraphOutput& output : outputs) {
    const Node* producer = graph.producer(output.value);
    if (producer == nullptr || !is_all_reduce(*producer)) {
      graph.add_output(output.name, output.value);
      continue;
    }
    reductions[output.name] = producer->attributes.text("reduction");
    graph.add_output(output.name, producer->inputs[0]);
  }
  return reductions;
}

class PipelineStep {
 public:
  PipelineStep(MicroBatch& micro, const spec::RunSpec& spec, const std::vector<models::ParameterSpec>& parameters,
               const PipelinePlace& place, const CostModel& costs, const Entries& entries)
      : micro_(micro),
        spec_(spec),
        place_(place),
        reductions_(take_reductions_out(micro.graph)),
        update_(micro.graph.registry(), spec.model.name + " update"),
        slots_(build_update(entries)),
        splits_(find_splits(parameters)),
        layout_(lay_out(micro, spec, costs)),
        exchanges_(exchanges()),
        rank_(micro, layout_, place, exchanges_),
        placed_(place_update(update_, layout_.ranks, [this](const GraphInput& input) { return holders_of(input); })),
        number_(rank_.free_number()) {}

  TrainingStep run(std::vector<models::ParameterSpec> parameters) {
    const ValueId wish = rank_.scalar(kStop, {DType::f32, {}, {}});
    const int64_t wishes = take_numbers(layout_.ranks);
    if (place_.rank != 0) rank_.send(wish, 0, wishes + place_.rank);
    rank_.add_slots();
    std::map<std::string, ValueId> outputs = share_outputs();
    outputs[kStop] = share_wishes(wish, wishes);
    find_gradients();
    add_update_nodes(outputs);
    rank_.finish();
    return finished(outputs, std::move(parameters));
  }

 private:
  static PipelineLayout lay_out(const MicroBatch& micro, const spec::RunSpec& spec, const CostModel& costs) {
    return lay_out_pipeline(micro, spec.pipeline.schedule, static_cast<int>(spec.mesh.pipeline),
                            static_cast<int>(spec.pipeline.micro_batches),
                            passes::chunks_of(spec.pipeline.schedule, static_cast<int>(spec.pipeline.chunks)), costs,
                            static_cast<int>(std::max<int64_t>(spec.threads, 1)));
  }

  std::vector<SlotSpec> build_update(const Entries& entries) {
    std::vector<TrainedParameter> trained = micro_.trained;
    std::vector<SlotSpec> sums;
    for (TrainedParameter& parameter : trained) {
      const TensorType type{DType::f32, micro_.graph.shape(parameter.value), {}};
      parameter.value = update_.add_input(InputKind::parameter, parameter.name, type);
      parameter.gradient = update_.add_input(InputKind::state, name_of_sum(parameter.name), type);
      sums.push_back({name_of_sum(parameter.name), type});
    }
    if (spec_.ema.decay > 0)
      for (const std::string& name : micro_.statistics)
        update_.add_input(InputKind::state, name, micro_.graph.type(micro_.graph.find_input(name)->value));
    std::vector<SlotSpec> slots = add_update(update_, spec_, trained, micro_.statistics, "update", entries);
    slots.insert(slots.end(), sums.begin(), sums.end());
    return slots;
  }

  /// Along the axis tensor layers, or along the axis data experts.
  Shardings find_splits(const std::vector<models::ParameterSpec>& parameters) {
    return split_weights(micro_, update_, slots_, parameters, spec_, place_.tensor_ranks,
                         shardings_of_parts(micro_.graph, slots_));
  }

  std::vector<int> all() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < layout_.ranks; ++rank) ranks.push_back(rank);
    return ranks;
  }

  /// Of what the state belongs to: a slot to the parameter, or the statistic, whose name ends its own.
  std::vector<int> holders_of(const std::string& state) const {
    std::string name = state;
    if (name.starts_with(kSlotPrefix)) {
      const size_t slash = name.find('/', std::string(kSlotPrefix).size());
      if (slash != name.npos) name = name.substr(slash + 1);
    }
    const auto found = layout_.holders.find(name);
    return found == layout_.holders.end() ? all() : found->second;
  }
  std::vector<int> holders_of(const GraphInput& input) const {
    return input.kind == InputKind::scalar ? all() : holders_of(input.name);
  }

  /// Sums of gradients of which ranks along the axis data keep parts: each term is exchanged.
  std::vector<bool> exchanges() const {
    std::vector<bool> exchanges;
    for (size_t index = 0; index < micro_.trained.size(); ++index) {
      const TensorType& sum = micro_.graph.type(micro_.trained[index].value);
      const bool is_reduced = place_.others > 1 && micro_.trained[index].parts == 1;
      exchanges.push_back(is_reduced && !layout_.contributors[index].empty() && shares_sum(spec_, sum));
    }
    return exchanges;
  }

  /// So many numbers of messages, the same on all ranks.
  int64_t take_numbers(int64_t count) {
    number_ += count;
    return number_ - count;
  }

  /// What one rank has made, on all.
  std::map<std::string, ValueId> share_outputs() {
    std::map<std::string, ValueId> shared;
    for (const GraphOutput& output : micro_.graph.outputs()) {
      const int64_t first = take_numbers(layout_.ranks);
      const int from = layout_.rank_of(micro_.graph, output.value);
      const std::string all_batches = output.name + ".of_step";
      if (from != place_.rank && from != PipelineLayout::kNobody) {
        shared[output.name] = rank_.receive(from, first + place_.rank, micro_.graph.type(output.value), all_batches);
        continue;
      }
      const bool is_mean = output.name == "loss";
      ValueId value =
          from == PipelineLayout::kNobody ? rank_.sum_made_here(output.value, is_mean) : rank_.output_sum(output.name);
      if (from == place_.rank && is_mean)
        value = ops::multiply_scalar(rank_.graph(), value, 1.0 / layout_.micro_batches, all_batches);
      if (const auto reduction = reductions_.find(output.name); reduction != reductions_.end())
        value = ops::all_reduce(rank_.graph(), value, reduction->second, output.name + ".of_ranks");
      shared[output.name] = value;
      if (from == PipelineLayout::kNobody) continue;
      for (int to = 0; to < layout_.ranks; ++to)
        if (to != place_.rank) rank_.send(value, to, first + to);
    }
    return shared;
  }

  /// How many ranks wish to stop: the first rank of the pipeline counts, and tells the others.
  ValueId share_wishes(ValueId wish, int64_t wishes) {
    const TensorType type{DType::f32, {}, {}};
    const int64_t answers = take_numbers(layout_.ranks);
    if (place_.rank != 0) {
      last_answer_ = answers + place_.rank;
      return {};
    }
    ValueId sum = wish;
    for (int from = 1; from < layout_.ranks; ++from)
      sum = ops::add(rank_.graph(), sum, rank_.receive(from, wishes + from, type, "stop.wish"), "stop.wishes");
    if (place_.others > 1) sum = ops::all_reduce(rank_.graph(), sum, "sum", "stop.ranks");
    if (place_.tensor_ranks > 1) sum = ops::all_reduce(rank_.graph(), sum, "sum", "stop.sharers", kTensorAxis);
    for (int to = 1; to < layout_.ranks; ++to) rank_.send(sum, to, answers + to);
    return sum;
  }

  bool is_held(const std::vector<int>& ranks) const {
    return std::find(ranks.begin(), ranks.end(), place_.rank) != ranks.end();
  }

  /// Sums of what the holders of a weight have computed, and the means over the ranks along the axis data.
  void find_gradients() {
    const auto count = micro_.trained.size();
    std::vector<int64_t> numbers(count, 0);
    for (size_t index = 0; index < count; ++index) {
      const std::vector<int>& makers = layout_.contributors[index];
      numbers[index] = take_numbers(static_cast<int64_t>(layout_.ranks) * layout_.ranks);
      if (!is_held(makers)) continue;
      for (const int to : layout_.holders.at(micro_.trained[index].name))
        if (to != place_.rank) rank_.send(rank_.gradient(index), to, numbers[index] + to * layout_.ranks + place_.rank);
    }
    for (size_t index = 0; index < count; ++index) {
      const std::string& name = micro_.trained[index].name;
      if (!rank_.is_held(name)) continue;
      ValueId gradient = sum_of(index, numbers[index]);
      if (TrainedParameter part = micro_.trained[index]; part.parts > 1) {
        part.gradient = gradient;
        gradient = gradient_of_mean(rank_.graph(), part);
      } else if (place_.others > 1 && !exchanges_[index]) {
        gradient = ops::all_reduce(rank_.graph(), gradient, "mean", "all_reduce/" + name);
      }
      gradients_[name] = gradient;
    }
  }

  ValueId sum_of(size_t index, int64_t number) {
    const std::vector<int>& makers = layout_.contributors[index];
    const TrainedParameter& parameter = micro_.trained[index];
    if (makers.empty()) return rank_.sum_made_here(parameter.gradient, /*mean=*/true);
    const TensorType type{DType::f32, micro_.graph.shape(parameter.value), {}};
    ValueId sum;
    for (const int from : makers) {
      const ValueId term = from == place_.rank ? rank_.gradient(index)
                                               : rank_.receive(from, number + place_.rank * layout_.ranks + from, type,
                                                               parameter.name + ".gradient");
      sum = sum.valid() ? ops::add(rank_.graph(), sum, term, parameter.name + ".gradients") : term;
    }
    return sum;
  }

  void add_update_nodes(std::map<std::string, ValueId>& outputs) {
    const int64_t first = take_numbers(static_cast<int64_t>(placed_.messages.size()));
    std::vector<ValueId> made(update_.values().size());
    const auto own = static_cast<size_t>(place_.rank);
    const auto send = [&](ValueId value) {
      for (size_t at = 0; at < placed_.messages.size(); ++at)
        if (const UpdateMessage& message = placed_.messages[at]; message.value == value && message.from == place_.rank)
          rank_.send(made[static_cast<size_t>(value.index)], message.to, first + static_cast<int64_t>(at));
    };
    const auto value_of = [&](ValueId value) {
      ValueId& known = made[static_cast<size_t>(value.index)];
      if (known.valid()) return known;
      if (update_.value(value).producer.valid() || !has_input(value)) {
        for (size_t at = 0; at < placed_.messages.size(); ++at)
          if (const UpdateMessage& message = placed_.messages[at]; message.value == value && message.to == place_.rank)
            known = rank_.receive(message.from, first + static_cast<int64_t>(at), update_.type(value),
                                  update_.value(value).name + ".from_rank");
        check(known.valid(), "an update of a pipeline that lacks an operand");
        return known;
      }
      return known = input_of(value);
    };
    for (const GraphInput& input : update_.inputs())
      if (is_sent(input.value)) {
        value_of(input.value);
        send(input.value);
      }
    for (size_t index = 0; index < update_.nodes().size(); ++index) {
      if (!placed_.runs_on[index][own]) continue;
      const NodeId id{static_cast<int32_t>(index)};
      const Node& node = update_.node(id);
      std::vector<ValueId> inputs;
      for (const ValueId input : node.inputs) inputs.push_back(value_of(input));
      const auto results = rank_.graph().add_node(node.op->name, inputs, node.attributes, update_.node_name(id));
      for (size_t output = 0; output < results.size(); ++output) {
        made[static_cast<size_t>(node.outputs[output].index)] = results[output];
        rank_.graph().copy_sharding(results[output], update_, node.outputs[output]);
        send(node.outputs[output]);
      }
    }
    for (const StateUpdate& update : update_.updates()) {
      const ValueId state = update_.find_input(update.state)->value;
      if (!has_input(state)) continue;
      value_of(state);
      successors_[update.state] = value_of(update.value);
    }
    for (const GraphOutput& output : update_.outputs()) outputs[output.name] = value_of(output.value);
    if (last_answer_ >= 0) outputs[kStop] = rank_.receive(0, last_answer_, {DType::f32, {}, {}}, "stop.answer");
  }

  bool is_sent(ValueId value) const {
    return std::any_of(placed_.messages.begin(), placed_.messages.end(), [&](const UpdateMessage& message) {
      return message.value == value && message.from == place_.rank;
    });
  }

  const GraphInput& update_input(ValueId value) const {
    return *std::find_if(update_.inputs().begin(), update_.inputs().end(),
                         [&](const GraphInput& input) { return input.value == value; });
  }
  bool has_input(ValueId value) const { return is_held(holders_of(update_input(value))); }

  ValueId input_of(ValueId value) {
    const GraphInput& input = update_input(value);
    if (const std::string sum = name_of_sum(""); input.name.starts_with(sum))
      return gradients_.at(input.name.substr(sum.size()));
    const TensorType& type = update_.type(value);
    return input.kind == InputKind::scalar ? rank_.scalar(input.name, type) : rank_.state(input.name, input.kind, type);
  }

  /// The graph with its results, and all that goes with it.
  TrainingStep finished(const std::map<std::string, ValueId>& outputs, std::vector<models::ParameterSpec> parameters) {
    Graph& graph = rank_.graph();
    graph.set_name(
        fmt::format("{} training, rank {} of {} of the pipeline", spec_.model.name, place_.rank, layout_.ranks));
    for (const auto& [name, value] : outputs) graph.add_output(name, value);
    for (const SlotSpec& sum : rank_.sums()) successors_[sum.name] = sum_after(sum.name);
    for (const auto& [name, value] : rank_.changed_states()) successors_.emplace(name, value);
    for (const auto& [name, value] : successors_) graph.add_update(name, value);
    for (const auto& [name, split] : splits_)
      if (const GraphInput* const input = graph.find_input(name)) graph.set_sharding(input->value, split);
    TrainingStep step{place_.others == 1                   ? std::move(graph)
                      : spec_.batch_norm == "synchronised" ? synchronise_batch_norm(graph, place_.others)
                                                           : average_statistics(graph),
                      std::move(parameters), std::move(slots_)};
    take_shardings(step);
    step.rank = place_.counterpart(place_.rank);
    step.pipeline = outlook();
    return step;
  }

  /// Of each state who has it, and which part of it.
  void take_shardings(TrainingStep& step) const {
    for (size_t index = 0; index < micro_.trained.size(); ++index) {
      const std::string sum = name_of_sum(micro_.trained[index].name);
      const std::vector<int>& makers = layout_.contributors[index];
      if (makers.empty())
        std::erase_if(step.slots, [&](const SlotSpec& slot) { return slot.name == sum; });
      else
        step.shardings[sum] = held_by(sum, micro_.graph.shape(micro_.trained[index].value), makers);
    }
    for (const models::ParameterSpec& parameter : step.parameters)
      step.shardings[parameter.name] = held_by(parameter.name, parameter.shape, holders_of(parameter.name));
    for (SlotSpec& slot : step.slots) {
      const std::vector<int> holders = holders_of(slot.name);
      const bool is_shared = slot.sharding || splits_.contains(slot.name) || holders != all();
      if (!step.shardings.contains(slot.name) && is_shared)
        step.shardings[slot.name] = held_by(slot.name, slot.type.shape, holders);
      if (const auto found = step.shardings.find(slot.name); found != step.shardings.end())
        slot.sharding = found->second;
    }
  }

  ValueId sum_after(const std::string& name) const {
    for (size_t index = 0; index < micro_.trained.size(); ++index)
      if (name_of_sum(micro_.trained[index].name) == name) return rank_.gradient(index);
    fail(ErrorKind::internal, "a sum of no gradient");
  }

  /// `shape`: of the whole state, where it is not split.
  StateSharding held_by(const std::string& state, const Shape& shape, const std::vector<int>& ranks) const {
    const auto split = splits_.find(state);
    StateSharding sharding = split != splits_.end() ? split->second : StateSharding(Sharding{.whole = shape});
    const int count = place_.ranks_of_stage();
    for (const int rank : ranks)
      for (int other = 0; other < count; ++other) sharding.on.push_back(rank * count + other);
    return sharding;
  }

  PipelineOutlook outlook() const {
    PipelineOutlook outlook{.schedule = spec_.pipeline.schedule,
                            .rank = place_.rank,
                            .ranks = layout_.ranks,
                            .micro_batches = layout_.micro_batches,
                            .order = layout_.schedule,
                            .times = layout_.staged.times,
                            .forecast = layout_.forecast,
                            .message_bytes = layout_.message_bytes,
                            .cut = fmt::format("{:016x}", hash_name(description_of_cut()))};
    const auto own = static_cast<size_t>(place_.rank);
    for (const PipelineMessage& message : layout_.messages)
      if (message.from == place_.rank)
        outlook.sent_bytes += layout_.micro_batches * micro_.graph.type(message.value).bytes();
    outlook.most_waiting = layout_.forecast.most_waiting[own];
    return outlook;
  }

  /// Which decides what ranks send each other.
  std::string description_of_cut() const {
    std::string text = print_graph(micro_.graph);
    for (const int stage : layout_.staged.stage) text += fmt::format("{} ", stage);
    for (const auto& slots : layout_.schedule.order)
      for (const passes::PipelineSlot& slot : slots)
        text += fmt::format("{},{},{} ", static_cast<int>(slot.work), slot.micro_batch, slot.chunk);
    return text;
  }

  MicroBatch& micro_;
  const spec::RunSpec& spec_;
  const PipelinePlace place_;
  const std::map<std::string, std::string> reductions_;
  Graph update_;
  std::vector<SlotSpec> slots_;
  const Shardings splits_;  // of states of which ranks of a stage have parts
  const PipelineLayout layout_;
  const std::vector<bool> exchanges_;  // per trained parameter
  RankGraph rank_;
  const PlacedUpdate placed_;
  std::map<std::string, ValueId> gradients_, successors_;
  int64_t number_, last_answer_ = -1;
};

}  // namespace

TrainingStep build_pipeline_step(MicroBatch micro, const spec::RunSpec& spec,
                                 std::vector<models::ParameterSpec> parameters, const PipelinePlace& place,
                                 const CostModel& costs, const Entries& entries) {
  PipelineStep step(micro, spec, parameters, place, costs, entries);
  return step.run(std::move(parameters));
}

}  // namespace weft::step
