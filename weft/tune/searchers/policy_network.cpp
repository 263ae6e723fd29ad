#include "weft/tune/searchers/policy_network.h"

#include <algorithm>
#include <cmath>

#include "weft/autodiff/autodiff.h"
#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/ops/ops.h"

namespace weft::tune {

namespace {

constexpr int64_t kWidth = 32;  // of the LSTM, and of what it reads
constexpr double kClip = 0.2, kLearningRate = 0.01;
constexpr int kPasses = 4;  // over each batch
constexpr float kImpossible = -1e9f;
constexpr double kStart = 0.1;  // deviation of the initial weights: every value is about as likely at first

struct Weight {
  const char* name;
  Shape shape;
};

std::vector<Weight> weights_of(int64_t values, int64_t columns) {
  return {{"table", {values, kWidth}},
          {"input", {4 * kWidth, kWidth}},
          {"recurrent", {4 * kWidth, kWidth}},
          {"bias", {4 * kWidth}},
          {"output", {columns, kWidth}}};
}

TensorType reals(Shape shape) { return {DType::f32, std::move(shape), {}}; }

std::string moment_name(const char* which, const char* weight) { return std::string(which) + "/" + weight; }

}  // namespace

PolicyNetwork::PolicyNetwork(const Library& library, std::vector<int64_t> choices, uint64_t seed)
    : library_(library), choices_(std::move(choices)), device_(library.device.make({1, library.kernels})) {
  check(!choices_.empty(), "a policy without decisions");
  for (const int64_t count : choices_) {
    most_ = std::max(most_, count);
    values_ += count;
  }
  uint64_t stream = 0;
  for (const Weight& weight : weights_of(values_, columns())) {
    RandomStream random(seed, ++stream);
    Tensor tensor(DType::f32, weight.shape), zeros(DType::f32, weight.shape);
    for (int64_t at = 0; at < tensor.elements(); ++at)
      tensor.data_as<float>()[at] = static_cast<float>(kStart) * random.normal();
    std::fill_n(zeros.data_as<float>(), zeros.elements(), 0.0f);
    state_.set(weight.name, std::move(tensor));
    state_.set(moment_name("first", weight.name), zeros.clone());
    state_.set(moment_name("second", weight.name), zeros.clone());
  }
  ValueId ignored;
  asks_.emplace(forward_graph(1, ignored), *device_);
}

/// The log probabilities [decisions * batch, columns].
Graph PolicyNetwork::forward_graph(int64_t batch, ValueId& log_probabilities) const {
  Graph graph(library_.ops, "policy");
  const auto decisions = static_cast<int64_t>(choices_.size());
  const ValueId tokens = graph.add_input(InputKind::batch, "tokens", {DType::i32, {decisions, batch}, {}});
  const ValueId mask = graph.add_input(InputKind::batch, "mask", reals({decisions * batch, columns()}));
  std::vector<ValueId> weights;
  for (const Weight& weight : weights_of(values_, columns()))
    weights.push_back(graph.add_input(InputKind::parameter, weight.name, reals(weight.shape)));
  const ValueId read = ops::embedding(graph, weights[0], tokens);
  const ops::LstmResult states =
      ops::lstm(graph, read, {.input = weights[1], .recurrent = weights[2], .input_bias = weights[3]});
  const ValueId rows = ops::reshape(graph, states.output, {decisions * batch, kWidth});
  const ValueId logits = ops::matmul(graph, rows, weights[4], false, /*transpose_b=*/true);
  log_probabilities = ops::log_softmax(graph, ops::add(graph, logits, mask));
  graph.add_output("log_probabilities", log_probabilities);
  return graph;
}

Graph PolicyNetwork::learning_graph() const {
  ValueId all;
  Graph graph = forward_graph(kBatch, all);
  const int64_t rows = static_cast<int64_t>(choices_.size()) * kBatch;
  const auto input = [&](const char* name, Shape shape) {
    return graph.add_input(InputKind::batch, name, reals(std::move(shape)));
  };
  const ValueId chosen = input("chosen", {rows, columns()}), before = input("before", {rows});
  const ValueId advantage = input("advantage", {rows}), counts = input("counts", {rows});
  const ValueId now = ops::reduce_sum(graph, ops::multiply(graph, all, chosen), {1});
  const ValueId ratio = ops::exp(graph, ops::subtract(graph, now, before));
  const ValueId gain = ops::minimum(graph, ops::multiply(graph, ratio, advantage),
                                    ops::multiply(graph, ops::clip(graph, ratio, 1 - kClip, 1 + kClip), advantage));
  const ValueId certainty = ops::reduce_sum(graph, ops::multiply(graph, ops::exp(graph, all), all), {1});
  const ValueId entropy = graph.add_input(InputKind::scalar, "entropy", reals({}));
  const ValueId each = ops::subtract(graph, ops::multiply(graph, certainty, entropy), gain);
  const ValueId loss =
      ops::multiply_scalar(graph, ops::reduce_sum(graph, ops::multiply(graph, each, counts)), 1.0 / kBatch);
  const ValueId rate = graph.add_input(InputKind::scalar, "learning_rate", reals({}));
  const ValueId step = graph.add_input(InputKind::scalar, "step", {DType::i64, {}, {}});
  std::vector<ValueId> targets;
  const std::vector<Weight> weights = weights_of(values_, columns());
  for (const Weight& weight : weights) targets.push_back(graph.find_input(weight.name)->value);
  const std::vector<ValueId> gradients = add_gradients(graph, loss, targets);
  for (size_t at = 0; at < weights.size(); ++at) {
    const std::string first = moment_name("first", weights[at].name), second = moment_name("second", weights[at].name);
    const ValueId first_moment = graph.add_input(InputKind::state, first, reals(weights[at].shape));
    const ValueId second_moment = graph.add_input(InputKind::state, second, reals(weights[at].shape));
    const auto updated = ops::adamw_update(graph, targets[at], gradients[at], first_moment, second_moment, rate, step,
                                           {.weight_decay = 0});
    graph.add_update(weights[at].name, updated[0]);
    graph.add_update(first, updated[1]);
    graph.add_update(second, updated[2]);
  }
  return graph;
}

std::vector<int32_t> PolicyNetwork::tokens(const std::vector<const std::vector<int64_t>*>& all) const {
  std::vector<int32_t> tokens(choices_.size() * all.size(), 0);
  for (size_t sample = 0; sample < all.size(); ++sample) {
    int64_t first = 1;  // of the values of the decision before
    for (size_t decision = 1; decision < choices_.size(); ++decision) {
      tokens[decision * all.size() + sample] = static_cast<int32_t>(first + (*all[sample])[decision - 1]);
      first += choices_[decision - 1];
    }
  }
  return tokens;
}

std::vector<float> PolicyNetwork::mask(int64_t batch) const {
  std::vector<float> mask(choices_.size() * static_cast<size_t>(batch * columns()), kImpossible);
  for (size_t decision = 0; decision < choices_.size(); ++decision)
    for (int64_t sample = 0; sample < batch; ++sample) {
      const int64_t row = static_cast<int64_t>(decision) * batch + sample;
      float* const own = mask.data() + row * columns() + static_cast<int64_t>(decision) * most_;
      std::fill_n(own, choices_[decision], 0.0f);
    }
  return mask;
}

std::vector<std::vector<double>> PolicyNetwork::log_probabilities(const std::vector<int64_t>& decisions) {
  asks_->executor.bind_state(state_);
  const std::vector<int32_t> read = tokens({&decisions});
  const std::vector<float> possible = mask(1);
  asks_->executor.bind_batch("tokens", read.data());
  asks_->executor.bind_batch("mask", possible.data());
  asks_->executor.run();
  const Tensor all = asks_->executor.output("log_probabilities");
  std::vector<std::vector<double>> of_decisions;
  const float* own = all.data_as<float>();  // in the row of a decision its values stand behind those of the others
  for (size_t decision = 0; decision < choices_.size(); ++decision, own += columns() + most_)
    of_decisions.emplace_back(own, own + choices_[decision]);
  return of_decisions;
}

PolicyNetwork::Memory PolicyNetwork::memory() const {
  Memory memory{.tensors = {}, .steps = steps_};
  for (const std::string& name : state_.names()) memory.tensors.emplace(name, state_.plain(name));
  return memory;
}

void PolicyNetwork::go_back_to(const Memory& memory) {
  for (const auto& [name, tensor] : memory.tensors) state_.set(name, tensor.clone());
  steps_ = memory.steps;
}

void PolicyNetwork::learn(const std::vector<Sample>& batch, double entropy) {
  check(batch.size() == static_cast<size_t>(kBatch), "a policy learns from whole batches");
  std::vector<const std::vector<int64_t>*> decided;
  for (const Sample& sample : batch) decided.push_back(&sample.decisions);
  const size_t rows = choices_.size() * batch.size();
  std::vector<float> chosen(rows * static_cast<size_t>(columns()), 0), before(rows), advantages(rows), counts(rows);
  for (size_t sample = 0; sample < batch.size(); ++sample) {
    const std::vector<std::vector<double>> likely = log_probabilities(batch[sample].decisions);
    for (size_t decision = 0; decision < choices_.size(); ++decision) {
      const size_t row = decision * batch.size() + sample;
      const auto value = static_cast<size_t>(batch[sample].decisions[decision]);
      chosen[row * static_cast<size_t>(columns()) + decision * static_cast<size_t>(most_) + value] = 1;
      before[row] = static_cast<float>(likely[decision][value]);
      advantages[row] = static_cast<float>(batch[sample].advantage);
      counts[row] = batch[sample].counts[decision] ? 1 : 0;
    }
  }
  if (!learns_) learns_.emplace(learning_graph(), *device_);
  Executor& executor = learns_->executor;
  executor.bind_state(state_);
  const std::vector<int32_t> read = tokens(decided);
  const std::vector<float> possible = mask(kBatch);
  executor.bind_batch("tokens", read.data());
  executor.bind_batch("mask", possible.data());
  executor.bind_batch("chosen", chosen.data());
  executor.bind_batch("before", before.data());
  executor.bind_batch("advantage", advantages.data());
  executor.bind_batch("counts", counts.data());
  executor.set_scalar("learning_rate", kLearningRate);
  executor.set_scalar("entropy", entropy);
  for (int pass = 0; pass < kPasses; ++pass) {
    executor.set_scalar("step", steps_++);
    executor.run();
  }
  executor.finish();
}

}  // namespace weft::tune
