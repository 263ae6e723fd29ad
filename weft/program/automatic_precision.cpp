#include "weft/program/automatic_precision.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/clock.h"
#include "weft/program/driver.h"
#include "weft/spec/compile_options.h"
#include "weft/step/step.h"

namespace weft::program {

namespace {

constexpr double kLeastGain = 0.05;       // of the time, to leave f32
constexpr double kMeasuredSeconds = 0.5;  // of steps, where they are shorter
constexpr int kMostSteps = 20;

/// Of one batch, forward, backward and, unless batches are accumulated, update. Everything is zero: kernels take as
/// long. It is the step of one process, whatever ranks divide: the others do not take part.
double step_seconds(const Library& library, spec::RunSpec spec, const std::string& precision,
                    const models::ModelInput& input, const Device& device) {
  spec.precision = precision;
  spec.mesh = {};
  spec.shard = {};
  if (precision == "f32") spec::fall_to_f32(spec);
  const step::TrainingStep step = step::build_training_step(library, spec, input);
  Program program([&](const spec::StepShape&) { return step.graph; }, device, spec::compile_options(spec, device));
  State state;
  std::vector<Tensor> batch;
  const Graph& graph = program.compiled(input.batch).graph;
  for (const GraphInput& operand : graph.inputs()) {
    const TensorType& type = graph.type(operand.value);
    if (operand.kind == InputKind::parameter || operand.kind == InputKind::state) state.set(operand.name, Tensor(type));
    if (operand.kind != InputKind::batch) continue;
    batch.emplace_back(type);
    program.executor(input.batch).bind_batch(operand.name, batch.back().data());
  }
  Driver driver(program, state);
  driver.select(input.batch);
  double best = 0, measured = 0;
  for (int count = 0; count < kMostSteps && measured < kMeasuredSeconds; ++count) {
    const double begin = steady_seconds();
    driver.run();
    const double seconds = steady_seconds() - begin;
    best = count == 0 ? seconds : std::min(best, seconds);
    if (count > 0) measured += seconds;  // the first step warms up
    if (count == 0 && seconds > 2 * kMeasuredSeconds) break;
  }
  return best;
}

}  // namespace

std::string faster_precision(const PrecisionTimes& times) {
  return times.bf16_seconds < (1 - kLeastGain) * times.f32_seconds ? "bf16" : "f32";
}

std::optional<PrecisionTimes> choose_automatic_precision(const Library& library, spec::RunSpec& spec,
                                                         const models::ModelInput& input, const Device& device) {
  if (spec.precision != "auto") return std::nullopt;
  spec.precision = spec::automatic_precision(device);
  if (spec.precision == "f32") return std::nullopt;
  const PrecisionTimes times{step_seconds(library, spec, "f32", input, device),
                             step_seconds(library, spec, "bf16", input, device)};
  spec.precision = faster_precision(times);
  if (spec.precision == "f32") spec::fall_to_f32(spec);
  return times;
}

std::string describe(const PrecisionTimes& times) {
  return fmt::format("precision auto: a step takes {:.4g} ms in f32, {:.4g} ms in bf16: computing in {}",
                     1e3 * times.f32_seconds, 1e3 * times.bf16_seconds, faster_precision(times));
}

}  // namespace weft::program
