// A small problem on which optimisers are compared with independent references over 50 steps: a matrix w [3,4] and a
// vector b [3] (a bias) with w[i] = sin(1.3 i), b[i] = sin(1.3 i + 1) and, at step t, the gradients
//   gw[i] = sin(0.7 i + 0.3 t) + w[i] / 2      gb[i] = sin(0.7 i + 0.3 t + 1) + b[i] / 2
// The same in PyTorch, whose numbers some tests hold: p.grad = those; optimizer.step().
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/runtime/executor.h"
#include "weft/step/optimizers/optimizer.h"

namespace weft::step {

using Numbers = std::vector<double>;

inline Numbers start(int64_t count, double phase) {
  Numbers values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(1.3 * static_cast<double>(i) + phase));
  return values;
}
inline Numbers gradient(const Numbers& parameter, int step, double phase) {
  Numbers values;
  for (size_t i = 0; i < parameter.size(); ++i)
    values.push_back(std::sin(0.7 * static_cast<double>(i) + 0.3 * step + phase) + 0.5 * parameter[i]);
  return values;
}

/// Trains w and b in double by a rule written from a paper: update(parameter, gradient, step, is_bias).
inline Numbers reference(const std::function<void(Numbers&, const Numbers&, int, bool)>& update, int steps = 50) {
  Numbers w = start(12, 0), b = start(3, 1);
  for (int step = 0; step < steps; ++step) {
    update(w, gradient(w, step, 0), step, false);
    update(b, gradient(b, step, 1), step, true);
  }
  w.insert(w.end(), b.begin(), b.end());
  return w;
}

class Problem {
 public:
  /// `w_shape` has 12 elements.
  explicit Problem(spec::RunSpec run_spec, const Shape& w_shape = {3, 4}, bool hidden = true)
      : spec_(std::move(run_spec)), registry_(ops::make_registry()), backend_(1) {
    Graph graph(registry_, "problem");
    std::vector<step::TrainedParameter> parameters;
    for (const auto& [name, shape] : {std::pair<std::string, Shape>{"w", w_shape}, {"b", {3}}}) {
      const TensorType type{DType::f32, shape, {}};
      const ValueId value = graph.add_input(InputKind::parameter, name, type);
      const ValueId noise = graph.add_input(InputKind::batch, "noise." + name, type);
      const ValueId slope = ops::add(graph, noise, ops::multiply_scalar(graph, value, 0.5));
      const bool is_bias = name == "b";
      parameters.push_back(
          {.name = name, .value = value, .gradient = slope, .decay = !is_bias, .hidden = hidden && !is_bias});
      Tensor tensor(type);
      const Numbers values = is_bias ? start(3, 1) : start(12, 0);
      for (size_t i = 0; i < values.size(); ++i) tensor.data_as<float>()[i] = static_cast<float>(values[i]);
      state.set(name, tensor);
    }
    slots = step::add_update(graph, spec_, step::without_frozen(spec_.optimizer, parameters), {}, "step");
    step::start_slots(slots, state);
    compiled_ = std::make_unique<CompiledStep>(compile(graph, backend_, {}));
    executor_ = std::make_unique<Executor>(compiled_->graph, compiled_->plan, backend_);
    executor_->bind_state(state);
  }

  Executor& executor() { return *executor_; }

  /// `poison` is added to the first element of the gradient of w.
  void step(int index, double rate, double momentum = 0, float poison = 0) {
    std::map<std::string, std::vector<float>> noise;
    for (const auto& [name, phase] : {std::pair<std::string, double>{"w", 0.0}, {"b", 1.0}}) {
      const auto count = static_cast<size_t>(state.get(name).elements());
      for (const double value : gradient(Numbers(count, 0), index, phase))
        noise[name].push_back(static_cast<float>(value));
      executor_->bind_batch("noise." + name, noise[name].data());
    }
    noise["w"][0] += poison;
    if (executor_->has_scalar("learning_rate")) executor_->set_scalar("learning_rate", rate);
    if (executor_->has_scalar("momentum")) executor_->set_scalar("momentum", momentum);
    if (executor_->has_scalar("step")) executor_->set_scalar("step", index);
    executor_->run();
  }

  Numbers values(const std::string& name) const {
    const Tensor tensor = state.plain(name);
    return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements()};
  }
  Numbers all() const {
    Numbers result = values("w");
    const Numbers b = values("b");
    result.insert(result.end(), b.begin(), b.end());
    return result;
  }

  State state;
  std::vector<step::SlotSpec> slots;

 private:
  spec::RunSpec spec_;
  OpRegistry registry_;
  CpuBackend backend_;
  std::unique_ptr<CompiledStep> compiled_;
  std::unique_ptr<Executor> executor_;
};

inline void expect_near(const Numbers& actual, const Numbers& expected, double tolerance = 1e-5) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
}

/// The weights after 50 steps.
inline Numbers train(const spec::RunSpec& spec, const Shape& w_shape = {3, 4}, bool hidden = true) {
  Problem problem(spec, w_shape, hidden);
  for (int step = 0; step < 50; ++step) problem.step(step, spec.optimizer.learning_rate);
  return problem.all();
}

inline spec::RunSpec spec_of(const std::string& name, double learning_rate, double decay) {
  spec::RunSpec spec;
  spec.optimizer.name = name;
  spec.optimizer.learning_rate = learning_rate;
  spec.optimizer.weight_decay = decay;
  spec.optimizer.momentum = 0.9;
  spec.optimizer.beta2 = 0.99;
  spec.optimizer.epsilon = 1e-6;
  return spec;
}

}  // namespace weft::step
