// Plans the training step of every model of the zoo; nothing runs.
#include <gtest/gtest.h>

#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/step/step.h"

namespace weft {
namespace {

constexpr double kAllowed = 1.05;  // arena over its lower bound

class ZooMemory : public testing::TestWithParam<std::string> {
 protected:
  Plan plan(int64_t batch) {
    spec::RunSpec spec;
    spec.model.name = GetParam();
    spec.batch = batch;
    spec.threads = 2;
    spec::resolve(spec);
    models::ModelInput input = models::find_model(library_.models, GetParam()).default_input;
    input.batch = batch;
    if (input.shape.empty()) input.shape = {3, 32, 32};
    const CpuBackend backend(2, library_.kernels);
    return compile(step::build_training_step(library_, spec, input).graph, backend, {.passes = {}, .threads = 2}).plan;
  }
  Library library_ = standard_library();
};

TEST_P(ZooMemory, ArenaIsNearItsLowerBoundForSmallBatches) {
  const Plan small = plan(2);
  EXPECT_LE(static_cast<double>(small.arena_bytes), kAllowed * static_cast<double>(small.lower_bound_bytes));
}

TEST_P(ZooMemory, ArenaIsNearItsLowerBoundForLargeBatches) {
  const Plan large = plan(32);
  EXPECT_LE(static_cast<double>(large.arena_bytes), kAllowed * static_cast<double>(large.lower_bound_bytes));
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const models::ModelEntry& entry : models::all_models()) all.push_back(entry.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, ZooMemory, testing::ValuesIn(names()), [](const auto& model) { return model.param; });

}  // namespace
}  // namespace weft
