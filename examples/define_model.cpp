// A network of one's own, trained on Fashion-MNIST: checkpoints, resume, eval, predict and explain come with it.
//   define_model            trains for one epoch, some seconds; fails below 85 % on the test images
//   define_model COMMAND    the program `weft` with this network in it, such as: define_model models small_net
#include <weft/weft.h>

#include <cstdio>

using namespace weft;

/// Two blocks of convolution, norm, relu and pooling, then the classes. Images are [N,C,H,W].
models::Model build_small_net(const OpRegistry& registry, const models::ModelInput& input,
                              const models::ModelOptions& options, models::Mode mode) {
  const int64_t width = models::OptionReader("small_net", options).integer("width", 16, 1, 1024);
  models::ModelBuilder m(registry, "small_net", input, mode);
  ValueId x = m.image(/*smallest=*/8);
  for (const int block : {1, 2}) {
    const std::string number = std::to_string(block);
    x = m.conv(x, "conv" + number, {.channels = block * width, .kernel = 3, .padding = {1, 1}});
    x = ops::relu(m.graph(), m.batch_norm(x, "norm" + number));
    x = ops::max_pool2d(m.graph(), x, {.kernel = {2, 2}, .stride = {2, 2}});
  }
  x = m.dropout(ops::reshape(m.graph(), x, {input.batch, -1}), 0.1, "dropout");
  return m.finish(m.linear(x, "classes", {.width = input.classes}));
}

int main(int argc, char** argv) try {
  Library library = standard_library();
  library.add_model({.name = "small_net",
                     .summary = "two convolutions, from examples/",
                     .options = {"width=16: channels of the first convolution"},
                     .default_input = {.shape = {1, 28, 28}, .classes = 10},
                     .build = build_small_net});
  if (argc > 1) return cli::run(argc, argv, library);

  spec::RunSpec spec;  // what a recipe says, see docs/run_directory.md
  spec.model = {.name = "small_net", .options = {{"width", "8"}}};
  spec.data = "fashion-mnist";
  spec.epochs = 1;
  spec.optimizer.name = "adamw";
  spec.optimizer.learning_rate = 0.003;
  const run::RunOutcome outcome = run::start_run(library, spec, /*directory=*/"", {.progress = stderr});
  const double accuracy = outcome.summary.test_metric("accuracy").value_or(0);
  std::printf("%s: test accuracy %.2f %%\n", outcome.directory.c_str(), 100 * accuracy);
  return accuracy > 0.85 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "define_model: %s\n", error.what());
  return error.exit_code();
}
