// Every model of the zoo trains two steps on the checked host, to the same bits as on the CPU: nothing touches the
// device's memory but kernels, within their operands, and copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/support/checked_host.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/program/synthetic.h"
#include "weft/runtime/executor.h"
#include "weft/spec/compile_options.h"
#include "weft/step/step.h"

namespace weft {
namespace {

constexpr int64_t kLargestSide = 64;  // of photos; AlexNet wants that

/// Smaller ones of the same kind, where the usual ones take seconds.
const std::map<std::string, models::ModelOptions>& small_options() {
  static const std::map<std::string, models::ModelOptions> options{
      {"densenet121", {{"blocks", "2,3,2,2"}}},
      {"wide_resnet", {{"depth", "10"}, {"width", "2"}}},
      {"wide_resnet50_2", {{"width", "16"}}},
      {"resnet101", {{"width", "16"}}},
      {"resnet152", {{"width", "16"}}},
      {"resnest269", {{"blocks", "1,2,1,1"}, {"stem", "16"}, {"width", "16"}}},
      {"resnet50", {{"width", "16"}}},
      {"resnet50_128", {{"width", "16"}}},
      {"resnet34", {{"width", "16"}}},
  };
  return options;
}

class CheckedModel : public testing::Test {
 protected:
  /// In that precision.
  void choose(const std::string& model, const std::string& precision) {
    spec_ = {};
    spec_.model.name = model;
    spec_.precision = precision;
    if (const auto found = small_options().find(model); found != small_options().end())
      spec_.model.options = found->second;
    spec_.batch = 2;
    spec_.threads = 2;
    spec::resolve(spec_);
    input_ = models::find_model(library_.models, model).default_input;
    input_.batch = 2;
    if (input_.shape.empty()) input_.shape = {3, 32, 32};
    const int64_t side = model == "vgg16" ? 32 : kLargestSide;  // with the small head
    if (input_.shape.size() == 3 && input_.shape[1] > side) input_.shape[1] = input_.shape[2] = side;
    input_.classes = std::min<int64_t>(input_.classes, 100);
  }

  State train(const Device& device, std::vector<float>& losses) {
    const step::TrainingStep step = step::build_training_step(library_, spec_, input_);
    const CompiledStep compiled = compile(step.graph, device, spec::compile_options(spec_, device));
    State state = step::initial_state(step, 0);
    Executor executor(compiled.graph, compiled.plan, device);
    const program::SyntheticBatch batch(compiled.graph, input_.classes);
    batch.bind(executor);
    executor.bind_state(state);
    for (int count = 0; count < 2; ++count) {
      executor.run();
      losses.push_back(executor.scalar_output("loss"));
    }
    return state;
  }

  void compare() {
    std::vector<float> losses, checked_losses;
    const State state = train(CpuBackend(2), losses), checked = train(CheckedHost(2), checked_losses);
    EXPECT_EQ(std::memcmp(losses.data(), checked_losses.data(), sizeof(float) * losses.size()), 0)
        << losses[1] << " and " << checked_losses[1];
    EXPECT_EQ(state.names(), checked.names());
    for (const std::string& name : state.names()) {
      const Tensor one = state.plain(name), other = checked.plain(name);
      ASSERT_EQ(one.bytes(), other.bytes()) << name;
      EXPECT_EQ(std::memcmp(one.data(), other.data(), static_cast<size_t>(one.bytes())), 0) << name;
    }
  }

  Library library_ = standard_library();
  spec::RunSpec spec_;
  models::ModelInput input_;
};

class CheckedZoo : public CheckedModel, public testing::WithParamInterface<std::string> {};

TEST_P(CheckedZoo, TrainsToTheSameBits) {
  choose(GetParam(), "f32");
  compare();
}

/// Narrow copies of weights, which are kept from step to step; with f16 the scale of the loss too.
TEST_F(CheckedModel, TrainsToTheSameBitsInHalfAsWide) {
  if (!CpuBackend(1).computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  for (const char* model : {"resnet9", "transformer_lm"})
    for (const char* precision : {"bf16", "f16"}) {
      SCOPED_TRACE(std::string(model) + " in " + precision);
      choose(model, precision);
      compare();
    }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const models::ModelEntry& entry : models::all_models()) all.push_back(entry.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, CheckedZoo, testing::ValuesIn(names()), [](const auto& model) { return model.param; });

}  // namespace
}  // namespace weft
