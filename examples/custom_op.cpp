// An op of one's own with shape rule, gradient and kernel: sin(x), by which networks fit waves (Sitzmann et al. 2020).
//   custom_op            checks the op, trains; fails below 95 % of explained variance (R2)
//   custom_op COMMAND    the program `weft` with op and network in it, such as: custom_op ops sine
#include <weft/weft.h>

#include <cmath>
#include <cstdio>
#include <fstream>

using namespace weft;

OpDef sine_op() {
  OpDef op;
  op.name = "sine";
  op.summary = "sin(x), element by element.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.infer = [](const InferContext& context) { return std::vector{ops::f32(context.shape(0))}; };
  op.gradient = [](GradContext& context) {  // cos(x) = sin(x + pi / 2)
    const ValueId ahead = ops::add_scalar(context.graph, context.inputs[0], std::acos(0.0));
    return std::vector{ops::multiply(context.graph, context.output_gradients[0], context.graph.add("sine", {ahead}))};
  };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  op.examples = {{.label = "matrix", .inputs = {ops::f32({5, 7})}, .ranges = {{-4, 4}}}};
  return op;
}
KernelBody sine_kernel(const NodeSignature& node, const KernelOptions&) {
  return [count = node.outputs[0].elements()](const KernelArguments& call) {
    for (int64_t i = 0; i < count; ++i) call.output(0)[i] = std::sin(call.input(0)[i]);
  };
}
models::Model build_waves(const OpRegistry& registry, const models::ModelInput& input, const models::ModelOptions&,
                          models::Mode mode) {
  models::ModelBuilder m(registry, "waves", input, mode);
  const ValueId x = m.linear(ops::multiply_scalar(m.graph(), m.samples(), 30), "frequencies", {.width = 64});
  return m.finish(m.linear(m.graph().add("sine", {x}), "amplitudes", {.width = input.classes}));
}

int main(int argc, char** argv) try {
  Library library = standard_library();
  library.add_op(sine_op(), sine_kernel);
  library.add_model({.name = "waves", .summary = "a sum of sines", .build = build_waves});
  if (argc > 1) return cli::run(argc, argv, library);
  check_op(library, "sine");  // the gradient against finite differences, over the op's examples
  std::ofstream table("chirp.csv");
  for (double x = 0; x < 4; x += 0.001) table << x << ',' << std::sin(3 * x * x) << std::endl;
  spec::RunSpec spec;
  spec.model.name = "waves";
  spec.data = "csv:chirp.csv?task=regression";
  spec.epochs = 20;
  spec.optimizer.name = "adam";
  spec.optimizer.learning_rate = 0.01;
  const run::RunOutcome outcome = run::start_run(library, spec, /*directory=*/"", {.progress = stderr});
  std::printf("%s: R2 %.4f\n", outcome.directory.c_str(), outcome.summary.test_metric("r2").value_or(0));
  return outcome.summary.test_metric("r2") > 0.95 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "custom_op: %s\n", error.what());
  return error.exit_code();
}
