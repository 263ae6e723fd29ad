#include "weft/step/rank_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "weft/base/error.h"
#include "weft/graph/collective.h"
#include "weft/ops/ops.h"
#include "weft/ops/ranks/collective.h"
#include "weft/step/global_draws.h"
#include "weft/step/micro_batches.h"

namespace weft::step {

namespace {

constexpr double kInTheEnd = std::numeric_limits<double>::infinity();

size_t index_of(ValueId id) { return static_cast<size_t>(id.index); }

}  // namespace

RankGraph::RankGraph(const MicroBatch& micro, const PipelineLayout& layout, const PipelinePlace& place,
                     std::vector<bool> exchanges)
    : micro_(micro),
      layout_(layout),
      place_(place),
      exchanges_(std::move(exchanges)),
      graph_(micro.graph.registry(), micro.graph.name()),
      made_(static_cast<size_t>(layout.micro_batches), std::vector<ValueId>(micro.graph.values().size())),
      expected_(made_.size(), std::vector<ValueId>(layout.messages.size())),
      gradients_(micro.trained.size()) {
  for (const GraphInput& input : micro.graph.inputs()) {
    inputs_[input.value.index] = &input;
    TensorType type = micro.graph.type(input.value);
    if (input.kind == InputKind::batch) {
      type.shape[0] *= layout.micro_batches;
      graph_.add_input(input.kind, input.name, type);
    } else if (input.kind != InputKind::scalar && is_held(input.name)) {
      state(input.name, input.kind, type);
    }
  }
  for (const StateUpdate& update : micro.graph.updates()) updates_[update.value.index] = update.state;
  for (size_t parameter = 0; parameter < micro.trained.size(); ++parameter)
    for (const ValueId term : layout.terms[parameter]) terms_[term.index].push_back(parameter);
}

bool RankGraph::is_held(const std::string& state) const {
  const auto holders = layout_.holders.find(state);
  return holders == layout_.holders.end() ||
         std::find(holders->second.begin(), holders->second.end(), place_.rank) != holders->second.end();
}

ValueId RankGraph::state(const std::string& name, InputKind kind, const TensorType& type) {
  const auto known = states_.find(name);
  if (known != states_.end()) return known->second;
  return states_[name] = graph_.add_input(kind, name, type);
}

ValueId RankGraph::scalar(const std::string& name, const TensorType& type) {
  const GraphInput* known = graph_.find_input(name);
  return known != nullptr ? known->value : graph_.add_input(InputKind::scalar, name, type);
}

ValueId RankGraph::output_sum(const std::string& name) const {
  const auto found = output_sums_.find(name);
  return found == output_sums_.end() ? ValueId{} : found->second;
}

ValueId RankGraph::gradient(size_t parameter) const { return gradients_[parameter]; }

ValueId& RankGraph::made(int m, ValueId value) { return made_[static_cast<size_t>(m)][index_of(value)]; }

std::string RankGraph::named(int m, const std::string& name) const {
  return layout_.micro_batches == 1 ? name : fmt::format("{}.micro{}", name, m);
}

void RankGraph::add_slots() {
  const auto count = layout_.schedule.order[static_cast<size_t>(place_.rank)].size();
  for (size_t at = 0; at < count; ++at) add_slot(at);
  now_ = count;
}

void RankGraph::add_slot(size_t at) {
  now_ = at;
  const auto rank = static_cast<size_t>(place_.rank);
  const passes::PipelineSlot& slot = layout_.schedule.order[rank][at];
  if (at == 0) expect(0);
  // Room for what comes is made before anything is waited for.
  expect(at + 1);
  end_sends(layout_.forecast.begins[rank][at]);
  for (const NodeId id : layout_.nodes_of(place_.rank, slot)) emit(slot.micro_batch, id);
}

void RankGraph::expect(size_t at) {
  for (size_t number = 0; number < layout_.messages.size(); ++number) {
    const PipelineMessage& message = layout_.messages[number];
    if (message.to != place_.rank) continue;
    for (int m = 0; m < layout_.micro_batches; ++m) {
      if (message.first_read[static_cast<size_t>(m)] != at) continue;
      const Value& value = micro_.graph.value(message.value);
      const int64_t tag = m * static_cast<int64_t>(layout_.messages.size()) + static_cast<int64_t>(number);
      Attributes attributes = this->message(message.from, tag, named(m, value.name));
      attributes.set("shape", value.type.shape.dims());
      attributes.set("dtype", std::string(weft::name_of(value.type.dtype)));
      expected_[static_cast<size_t>(m)][number] =
          graph_.add(kReceiveStart, {}, attributes, named(m, value.name) + ".expected");
    }
  }
}

Attributes RankGraph::message(int peer, int64_t number, const std::string& tensors) const {
  return {{"number", number},
          {"tensors", tensors},
          {"peer", static_cast<int64_t>(place_.counterpart(peer))},
          {"tag", number}};
}

void RankGraph::emit(int m, NodeId id) {
  const Node& node = micro_.graph.node(id);
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(resolve(m, input));
  const std::vector<ValueId> outputs =
      graph_.add_node(node.op->name, inputs, node.attributes, named(m, micro_.graph.node_name(id)));
  for (size_t output = 0; output < outputs.size(); ++output) {
    const ValueId value = node.outputs[output];
    made(m, value) = outputs[output];
    graph_.copy_sharding(outputs[output], micro_.graph, value);
    if (layout_.rank_of(id) == PipelineLayout::kNobody) continue;
    send_value(m, value);
    if (const auto update = updates_.find(value.index); update != updates_.end())
      states_[update->second] = changed_[update->second] = outputs[output];
    add_terms(m, value, outputs[output]);
    add_to_outputs(value, outputs[output]);
  }
}

ValueId RankGraph::resolve(int m, ValueId value) {
  if (const ValueId known = made(m, value); known.valid()) return known;
  const NodeId producer = micro_.graph.value(value).producer;
  if (!producer.valid()) return resolve_input(m, value);
  const int rank = layout_.rank_of(producer);
  if (rank == PipelineLayout::kNobody) {
    emit(m, producer);
    return made(m, value);
  }
  check(rank != place_.rank, "a node of a pipeline that stands before what it reads");
  const size_t number = layout_.message_to.at({value.index, place_.rank});
  const ValueId pending = expected_[static_cast<size_t>(m)][number];
  const Attributes& begun = graph_.node(graph_.value(pending).producer).attributes;
  const Attributes attributes{{"number", begun.integer("number")},
                              {"tensors", begun.text("tensors")},
                              {"peer", begun.integer("peer")},
                              {"tag", begun.integer("tag")}};
  return made(m, value) = graph_.add(kReceiveWait, {pending}, attributes, named(m, micro_.graph.value(value).name));
}

ValueId RankGraph::resolve_input(int m, ValueId value) {
  const GraphInput& input = *inputs_.at(value.index);
  const TensorType& type = micro_.graph.type(value);
  if (input.kind == InputKind::parameter || input.kind == InputKind::state) return state(input.name, input.kind, type);
  if (input.kind == InputKind::scalar)
    return made(m, value) = scalar(input.name == kDrawPlace ? name_of_micro_place(m) : input.name, type);
  const ValueId whole = graph_.find_input(input.name)->value;
  if (layout_.micro_batches == 1) return made(m, value) = whole;
  std::vector<int64_t> starts(static_cast<size_t>(type.shape.rank()), 0), ends = type.shape.dims();
  starts[0] = m * type.shape[0];
  ends[0] = starts[0] + type.shape[0];
  return made(m, value) = ops::slice(graph_, whole, starts, ends, named(m, input.name));
}

void RankGraph::send_value(int m, ValueId value) {
  for (size_t number = 0; number < layout_.messages.size(); ++number) {
    const PipelineMessage& message = layout_.messages[number];
    if (message.value != value || message.from != place_.rank) continue;
    const int64_t tag = m * static_cast<int64_t>(layout_.messages.size()) + static_cast<int64_t>(number);
    const size_t read = message.first_read[static_cast<size_t>(m)];
    const auto to = static_cast<size_t>(message.to);
    // From when on the other has room for it.
    const double expected = layout_.forecast.begins[to][read == 0 ? 0 : read - 1];
    const double there = layout_.forecast.ends[static_cast<size_t>(place_.rank)][now_];
    const std::string name = named(m, micro_.graph.value(value).name);
    const Attributes attributes = this->message(message.to, tag, name);
    Attributes begun = attributes;
    const NodeId producer = micro_.graph.value(value).producer;
    begun.set("forward", layout_.staged.work[static_cast<size_t>(producer.index)] == passes::PipelineWork::forward);
    sent_.push_back({graph_.add(kSendStart, {made(m, value)}, begun, name + ".leaves"), attributes,
                     std::max(expected, there) + layout_.staged.times.link});
  }
}

void RankGraph::end_sends(double now) {
  std::erase_if(sent_, [&](const Sent& one) {
    if (one.arrives > now) return false;
    graph_.add(kSendWait, {one.pending}, one.attributes, one.attributes.text("tensors") + ".left");
    return true;
  });
}

void RankGraph::add_terms(int m, ValueId value, ValueId made) {
  const auto found = terms_.find(value.index);
  if (found == terms_.end()) return;
  if (!share_.valid()) {
    begins_ = ops::constant(graph_, {}, 0, "sum.begins");
    adds_ = ops::constant(graph_, {}, 1, "sum.adds");
    share_ = ops::constant(graph_, {}, 1.0 / layout_.micro_batches, "sum.share");
  }
  for (const size_t parameter : found->second) {
    ValueId& sum = gradients_[parameter];
    const std::string& name = micro_.trained[parameter].name;
    const bool is_first = !sum.valid();
    if (is_first) {
      sums_.push_back({slot_name(kMicroSumSlot, name), {DType::f32, micro_.graph.shape(value), {}}});
      sum = state(sums_.back().name, InputKind::state, sums_.back().type);
    }
    const ValueId term =
        exchanges_[parameter] ? ops::all_reduce(graph_, made, "mean", named(m, "all_reduce/" + name)) : made;
    sum = ops::blend_update(graph_, sum, term, is_first ? begins_ : adds_, share_, "accumulate/" + name);
  }
}

void RankGraph::add_to_outputs(ValueId value, ValueId made) {
  for (const GraphOutput& output : micro_.graph.outputs()) {
    if (output.value != value) continue;
    ValueId& sum = output_sums_[output.name];
    sum = sum.valid() ? ops::add(graph_, sum, made, output.name + ".sum") : made;
  }
}

ValueId RankGraph::sum_made_here(ValueId value, bool mean) {
  ValueId sum = resolve(0, value);
  const std::string& name = micro_.graph.value(value).name;
  for (int m = 1; m < layout_.micro_batches; ++m) sum = ops::add(graph_, sum, resolve(m, value), name + ".sum");
  return mean ? ops::multiply_scalar(graph_, sum, 1.0 / layout_.micro_batches, name + ".mean") : sum;
}

int64_t RankGraph::free_number() const { return static_cast<int64_t>(layout_.messages.size()) * layout_.micro_batches; }

void RankGraph::send(ValueId value, int to, int64_t number) {
  const std::string& name = graph_.value(value).name;
  const Attributes attributes = message(to, number, name);
  sent_.push_back({graph_.add(kSendStart, {value}, attributes, name + ".leaves"), attributes, kInTheEnd});
}

ValueId RankGraph::receive(int from, int64_t number, const TensorType& type, const std::string& name) {
  return ops::receive(graph_, place_.counterpart(from), number, {type.dtype, type.shape, {}}, name);
}

void RankGraph::finish() {
  for (const Sent& one : sent_)
    graph_.add(kSendWait, {one.pending}, one.attributes, one.attributes.text("tensors") + ".left");
  sent_.clear();
}

}  // namespace weft::step
