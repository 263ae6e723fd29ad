// Activations that find no place in a device's own memory lie in a file: nodes copy them to the host's memory before
// they are written, and back after they were read. The bits are those of the CPU without a limit.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/support/checked_host.h"
#include "weft/compile/compile.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/recomputed.h"
#include "weft/graph/space_copies.h"
#include "weft/library/library.h"
#include "weft/program/synthetic.h"
#include "weft/runtime/executor.h"
#include "weft/spec/run_spec.h"
#include "weft/step/step.h"

namespace weft {
namespace {

class CheckedOffload : public testing::Test {
 protected:
  CheckedOffload() {
    spec_.model.name = "resnet9";
    spec_.batch = 16;
    spec_.threads = 2;
    spec::resolve(spec_);
    training_.emplace(step::build_training_step(library_, spec_, {.batch = 16, .shape = {3, 32, 32}, .classes = 10}));
  }

  CompiledStep compiled(const Device& device, int64_t limit, const std::vector<std::string>& without = {}) const {
    CompileOptions options{.grants_workspace = false,
                           .threads = 2,
                           .arena_limit_bytes = limit,
                           .offload_bytes_per_second = limit > 0 ? 1e14 : 0};
    options.passes.disabled = without;
    return compile(training_->graph, device, options);
  }

  State trained(const Device& device, const CompiledStep& step) const {
    State state = step::initial_state(*training_, 7);
    Arena arena(device.memory());
    arena.reserve(step.plan.arena_bytes);
    if (step.plan.file_bytes > 0) {
      arena.open_file(std::filesystem::temp_directory_path());
      arena.file()->reserve(step.plan.file_bytes);
    }
    Executor executor(step.graph, step.plan, device, &arena);
    const program::SyntheticBatch batch(step.graph, 10);
    batch.bind(executor);
    executor.bind_state(state);
    for (int count = 0; count < 3; ++count) {
      executor.set_scalar("learning_rate", 0.05);
      executor.run();
    }
    return state;
  }

  void expect_same_bits(const CompiledStep& limited, const CheckedHost& device) const {
    const CpuBackend cpu(2);
    const State wanted = trained(cpu, compiled(cpu, 0)), state = trained(device, limited);
    for (const std::string& name : wanted.names()) {
      const Tensor a = state.plain(name), b = wanted.plain(name);
      EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())), 0) << name;
    }
  }

  const Library library_ = standard_library();
  spec::RunSpec spec_;
  std::optional<step::TrainingStep> training_;
};

TEST_F(CheckedOffload, ActivationsInAFileGiveTheSameBits) {
  const CheckedHost device(2);
  const int64_t limit = compiled(device, 0).plan.arena_bytes * 7 / 10;
  const CompiledStep limited = compiled(device, limit, {"recompute"});
  EXPECT_LE(limited.plan.arena_bytes, limit);
  EXPECT_GT(limited.recompute.offloaded, 0);
  EXPECT_GT(limited.plan.file_bytes, 0);
  const Graph& graph = limited.graph;
  for (const Node& node : graph.nodes()) {
    if (!is_store(node)) continue;
    EXPECT_TRUE(is_copy_to_host(*graph.producer(node.inputs[0])));
  }
  expect_same_bits(limited, device);
}

TEST_F(CheckedOffload, RecomputationAloneGivesTheSameBits) {
  const CheckedHost device(2);
  const int64_t limit = compiled(device, 0).plan.arena_bytes * 7 / 10;
  const CompiledStep limited = compiled(device, limit, {"offload"});
  EXPECT_LE(limited.plan.arena_bytes, limit);
  EXPECT_GT(limited.recompute.nodes, 0);
  EXPECT_EQ(limited.plan.file_bytes, 0);
  expect_same_bits(limited, device);
}

}  // namespace
}  // namespace weft
