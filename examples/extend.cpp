// What a recipe names, of one's own: an optimiser, a schedule and a loss, each with a key that it declares.
//   extend            trains with all three; fails below 90 % of explained variance (R2)
//   extend COMMAND    the program `weft` with them in it, such as: extend keys optimizer
#include <weft/weft.h>

#include <cmath>
#include <cstdio>
#include <fstream>

using namespace weft;

/// Along the sign of an average of the gradients (Bernstein et al. 2018), softened near 0.
void add_signum(step::UpdateBuilder& builder, const std::vector<step::UpdatedParameter>& parameters) {
  Graph& graph = builder.graph();
  const double softness = own_value<double>(builder.spec().own, "softness");
  for (const step::UpdatedParameter& parameter : parameters) {
    const ValueId average = builder.average_slot("average", parameter.name, parameter.gradient, 0.9);
    const ValueId size = ops::add_scalar(graph, ops::absolute(graph, average), softness);
    builder.descend(parameter, ops::divide(graph, average, size), parameter.learning_rate, parameter.weight_decay);
  }
}
/// The peak for so many epochs, then falling as one over the root of the steps (Vaswani et al. 2017).
RateOfStep make_inverse_root(const spec::ScheduleSpec& schedule, double peak, const spec::Course& course) {
  const auto rate = [=, flat = course.step_at(own_value<double>(schedule.own, "flat_epochs"))](int64_t step) {
    return peak / std::sqrt(std::max(1.0, static_cast<double>(step) / flat));
  };
  return step::with_rise(schedule, course, rate);
}
/// width sqrt(width^2 + error^2), which spares outliers (Charbonnier et al. 1997).
ValueId build_pseudo_huber(const LossCall& call) {
  const double width = own_value<double>(call.options.own, "width");
  const ValueId square = ops::square(call.graph, ops::subtract(call.graph, call.logits, call.labels));
  const ValueId root = ops::sqrt(call.graph, ops::add_scalar(call.graph, square, width * width));
  return ops::reduce_mean(call.graph, ops::multiply_scalar(call.graph, root, width), {1});
}

int main(int argc, char** argv) try {
  Library library = standard_library();
  const Key softness{.name = "softness", .value = 1e-3, .low = 1e-9, .high = 1, .help = "signum: below, steps shrink"};
  library.add_optimizer({"signum", "steps of one size", 0.01, 0, {softness}, add_signum});
  const Key flat{.name = "flat_epochs", .value = 1.0, .low = 0.1, .high = 1e6, .unit = "epochs", .help = "at the peak"};
  library.add_schedule({.name = "inverse_root", .summary = "1/sqrt", .keys = {flat}, .make = make_inverse_root});
  const Key width{.name = "width", .value = 1.0, .low = kAboveZero, .high = 1e6, .help = "errors below are squared"};
  library.add_loss({"pseudo_huber", "spares outliers", {width}, build_pseudo_huber});
  if (argc > 1) return cli::run(argc, argv, library);
  std::ofstream table("products.csv");
  for (int i = 0; i < 4000; ++i) table << i % 61 << ',' << i % 67 << ',' << (i % 61) * (i % 67) / 1e3 << std::endl;
  spec::RunSpec spec;
  for (const char* setting :
       {"model=mlp", "data=csv:products.csv?task=regression", "epochs=20", "optimizer.name=signum",
        "schedule.name=inverse_root", "schedule.flat_epochs=4", "loss.name=pseudo_huber"})
    spec::set_from_text(spec, setting, library);
  const run::RunOutcome outcome = run::start_run(library, spec, /*directory=*/"", {.progress = stderr});
  std::printf("%s: R2 %.4f\n", outcome.directory.c_str(), outcome.summary.test_metric("r2").value_or(0));
  return outcome.summary.test_metric("r2") > 0.9 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "extend: %s\n", error.what());
  return error.exit_code();
}
