// A training loop by hand: the graph of a step, its plan, batches, weights in a file. None of the run's machinery.
//   training_loop    fails below 85 % on Fashion-MNIST; then, on the test images: weft eval --model mlp
//                    --set model.hidden=128 --data fashion-mnist --weights weights.safetensors
#include <weft/weft.h>

#include <cstdio>

using namespace weft;

int main() try {
  const auto images = data::open_dataset("fashion-mnist", data::Split::train);
  data::Loader loader(*images, {.batch = 100, .shuffle = true, .statistics = data::channel_statistics(*images)});

  // Forward, loss, gradients and the update of each parameter are one graph, which becomes one plan.
  const OpRegistry registry = ops::make_registry();
  models::ModelBuilder m(registry, "mlp", {.batch = 100, .shape = {1, 28, 28}, .classes = 10}, models::Mode::training);
  ValueId x = ops::reshape(m.graph(), m.image(28), {100, -1});
  x = ops::relu(m.graph(), m.linear(x, "fc1", {.width = 128}));
  models::Model model = m.finish(m.linear(x, "fc2", {.width = 10}));
  Graph& graph = model.graph;
  const ValueId loss = ops::mean_cross_entropy(graph, model.logits, model.labels);
  graph.add_output("loss", loss);
  graph.add_output("correct", ops::count_correct(graph, model.logits, model.labels));
  const ValueId rate = graph.add_input(InputKind::scalar, "learning_rate", ops::f32({}));
  State state;
  std::vector<ValueId> weights;
  for (const models::ParameterSpec& parameter : model.parameters) {
    state.set(parameter.name, models::initialize(parameter, /*seed=*/1));
    weights.push_back(graph.find_input(parameter.name)->value);
  }
  const std::vector<ValueId> gradients = add_gradients(graph, loss, weights);
  for (size_t i = 0; i < weights.size(); ++i) {
    const ValueId next = ops::subtract(graph, weights[i], ops::multiply(graph, gradients[i], rate));
    graph.add_update(model.parameters[i].name, next);
  }
  const CpuBackend backend(/*threads=*/2);
  const CompiledStep compiled = compile(graph, backend, {.threads = 2});
  Executor executor(compiled.graph, compiled.plan, backend);
  executor.bind_state(state);
  float correct = 0;  // in the second epoch
  loader.start();
  for (int64_t step = 0, steps = loader.steps_per_epoch(); step < 2 * steps; ++step) {
    const data::Batch& batch = loader.next();
    executor.bind_batch("image", batch.samples.data());
    executor.bind_batch("labels", batch.targets.data());
    executor.set_scalar("learning_rate", step < steps ? 0.1 : 0.02);
    executor.run();
    if (step % 100 == 0) std::printf("step %d: loss %.4f\n", int(step), double{executor.scalar_output("loss")});
    if (step >= steps) correct += executor.scalar_output("correct");
  }
  SafetensorsFile file;
  for (const std::string& name : state.names()) file.tensors[name] = state.plain(name);
  write_safetensors("weights.safetensors", file);
  std::printf("%.2f %% right in the second epoch\n", double{correct} / 600);
  return correct > 0.85f * 60000 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "training_loop: %s\n", error.what());
  return error.exit_code();
}
