// weft check-steps (for developers): trains a few steps from given weights on given batches and writes what came out,
// so that another program that does the same can be compared number by number. Under mpirun each rank takes its rows of
// the batches.
//   WEIGHTS  safetensors with every parameter by name
//   BATCHES  safetensors with step.K.image (f32) or step.K.tokens (i32), and step.K.labels (i32), K from 0
//   OUT      safetensors with losses f32[steps], gradient.NAME of step 0 and final.NAME after the last step
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "weft/base/error.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/interchange/safetensors/parameters.h"
#include "weft/launch/launched_ranks.h"
#include "weft/program/driver.h"
#include "weft/program/rank_runtime.h"
#include "weft/spec/compile_options.h"
#include "weft/step/data_parallel.h"
#include "weft/step/step.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli {

namespace {

struct CheckOptions {
  ModelChoice choice;
  std::string weights, batches, out;
  int64_t steps = 20;
  double learning_rate = 0.01, momentum = 0.9, weight_decay = 0;
};

/// The tensor of one step for a batch input of the graph, whose rows are one of so many equal parts of it.
const Tensor& batch_tensor(const SafetensorsFile& file, const CheckOptions& options, int64_t step, const Graph& graph,
                           const GraphInput& input, int parts) {
  const std::string name = fmt::format("step.{}.{}", step, input.name);
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) fail(ErrorKind::data, "'{}' has no tensor '{}'", options.batches, name);
  const TensorType& type = graph.type(input.value);
  const Tensor& tensor = found->second;
  // Labels of sequences may come as [N,T]; in memory they are the same.
  if (tensor.dtype() != type.dtype || tensor.elements() != parts * type.elements())
    fail(ErrorKind::data, "'{}': '{}' is {}, the model wants {}{}", options.batches, name, to_string(tensor.type()),
         to_string(type), parts > 1 ? fmt::format(" on each of {} ranks", parts) : "");
  return tensor;
}

/// The files, and what to train as it follows from them.
struct Checked {
  Checked(const Library& library, CheckOptions given, int ranks) : options(std::move(given)) {
    options.choice.set.insert(options.choice.set.begin(),
                              {fmt::format("optimizer.learning_rate={}", options.learning_rate),
                               fmt::format("optimizer.momentum={}", options.momentum),
                               fmt::format("optimizer.weight_decay={}", options.weight_decay)});
    batches = read_safetensors(options.batches);
    const auto first = batches.tensors.find("step.0.labels");
    const auto first_input =
        batches.tensors.find(batches.tensors.contains("step.0.image") ? "step.0.image" : "step.0.tokens");
    if (first == batches.tensors.end() || first_input == batches.tensors.end())
      fail(ErrorKind::data, "'{}' has no 'step.0.labels' with 'step.0.image' or 'step.0.tokens'", options.batches);
    options.choice.batch = first_input->second.shape()[0];
    spec = spec_of_model(library, options.choice, 1);
    if (spec.mesh.pipeline > 1)
      fail(ErrorKind::usage,
           "mesh.pipeline = {}: the gradients of all weights are wanted on each rank here; set mesh.pipeline=1",
           spec.mesh.pipeline);
    spec.batch = launch::batch_of_rank(spec.batch, ranks, "a batch of");
    input = input_of(library, options.choice, spec.batch);
  }

  CheckOptions options;
  SafetensorsFile batches;
  spec::RunSpec spec;
  models::ModelInput input;
};

State state_from(const CheckOptions& options, const step::TrainingStep& step, uint64_t seed) {
  State state = step::initial_state(step, seed);
  std::vector<WantedParameter> wanted;
  for (const models::ParameterSpec& parameter : step.parameters) wanted.push_back({parameter.name, parameter.shape});
  for (auto& [name, tensor] : import_parameters(options.weights, wanted).tensors) state.set(name, std::move(tensor));
  step::start_slots(step, state);
  return state;
}

int check_command(const Library& library, const CheckOptions& given, comm::Communicator* ranks) {
  const int parts = comm::number_of(ranks), part = comm::rank_of(ranks);
  std::optional<Checked> checked;
  comm::on_all_ranks(ranks, "batches", [&] { checked.emplace(library, given, parts); });
  const CheckOptions& options = checked->options;
  const SafetensorsFile& batches = checked->batches;
  const spec::RunSpec& spec = checked->spec;
  const program::RankRuntime runtime(ranks, static_cast<int>(spec.threads), program::agreed_costs(ranks, spec.cluster));
  const std::unique_ptr<Device> device =
      library.device.make({.threads = static_cast<int>(spec.threads), .kernels = runtime.kernels(library.kernels)});
  CompileOptions compile_options = spec::compile_options(spec, *device);
  compile_options.ranks = runtime.costs();
  const std::shared_ptr<Arena> arena = runtime.make_arena(*device);
  std::optional<step::TrainingStep> step;
  program::Program program([&](const spec::StepShape&) { return step->graph; }, *device, compile_options, arena);
  State state;
  comm::on_all_ranks(ranks, "training step", [&] {
    step = step::build_training_step(library, spec, checked->input,
                                     {.gradient_outputs = true, .ranks = parts, .costs = runtime.costs()});
    state = state_from(options, *step, static_cast<uint64_t>(spec.seed));
    const Graph& graph = program.compiled(spec.batch).graph;
    for (int64_t index = 0; index < options.steps; ++index)
      for (const GraphInput& wanted : graph.inputs())
        if (wanted.kind == InputKind::batch) batch_tensor(batches, options, index, graph, wanted, parts);
  });
  arena->reserve(program.arena_bytes());
  program::Driver driver(program, state);
  driver.select(spec.batch);
  spec::RunSpec constant = spec;
  constant.schedule = {};
  constant.schedule.name = "constant";
  const spec::Course course(options.steps, options.steps);
  step::StepScalars scalars(constant, course, parts, part);
  driver.bind_scalars(scalars);
  driver.set_scalar(step::kStop, 0);
  Executor& executor = driver.executor();
  const Graph& graph = driver.graph();

  SafetensorsFile out;
  Tensor losses(DType::f32, Shape{options.steps});
  for (int64_t index = 0; index < options.steps; ++index) {
    for (const GraphInput& wanted : graph.inputs())
      if (wanted.kind == InputKind::batch)
        executor.bind_batch(wanted.name,
                            batch_tensor(batches, options, index, graph, wanted, parts).data_as<std::byte>() +
                                part * graph.type(wanted.value).bytes());
    driver.run_step(scalars, {.step = index}, /*shards=*/1, {});
    losses.data_as<float>()[index] = executor.scalar_output("loss");
    if (index == 0)
      for (const GraphOutput& output : graph.outputs())
        if (output.name.starts_with("gradient.")) out.tensors.emplace(output.name, executor.output(output.name));
  }
  out.tensors.emplace("losses", std::move(losses));
  for (const models::ParameterSpec& parameter : step->parameters)
    out.tensors.emplace("final." + parameter.name, state.plain(parameter.name));
  if (comm::is_first(ranks)) write_safetensors(options.out, out);
  return 0;
}

}  // namespace

void add_check_steps(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check-steps", "Train given batches from given weights, for comparison");
  command->group("");  // hidden
  command->add_option("MODEL", options->choice.model, "Model")->required();
  command->add_option("--input", options->choice.input, "C,H,W or T")->required();
  command->add_option("--classes", options->choice.classes, "Or the vocabulary")->required();
  command->add_option("--weights", options->weights, "safetensors")->required();
  command->add_option("--batches", options->batches, "safetensors")->required();
  command->add_option("--steps", options->steps, "Steps; default 20")->check(CLI::Range(1, 1000000));
  command->add_option("--learning-rate", options->learning_rate, "Constant; default 0.01");
  command->add_option("--momentum", options->momentum, "Default 0.9");
  command->add_option("--weight-decay", options->weight_decay, "Default 0");
  command->add_option("--threads", options->choice.threads, "Default: all cores");
  command->add_option("--set", options->choice.set, "Any key of a recipe; repeatable")->allow_extra_args(false);
  command->add_option("--out", options->out, "safetensors to write")->required();
  command->callback([options, &action, &library] {
    action = [options, &library] {
      return launch::on_launched_ranks(
          [&](comm::Communicator* ranks) { return check_command(library, *options, ranks); });
    };
  });
}

}  // namespace weft::cli
