// Steps under a memory limit: they keep to it, and compute bit by bit what they compute without, whether activations
// are made again or lie in a file.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "weft/base/isa.h"
#include "weft/base/rng.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/device/offload_timeline.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/recomputed.h"
#include "weft/runtime/executor.h"
#include "weft/step/step.h"

namespace weft {
namespace {

class Recompute : public testing::Test {
 protected:
  step::TrainingStep step(const std::string& model, const models::ModelInput& input,
                          const models::ModelOptions& options = {}) {
    spec::RunSpec spec;
    spec.model = {model, options};
    spec.batch = input.batch;
    spec.threads = backend_.threads();
    spec::resolve(spec);
    return step::build_training_step(library_, spec, input);
  }

  CompiledStep compiled(const Graph& graph, int64_t arena_limit, DType precision = DType::f32,
                        double offload_bytes_per_second = 0) {
    CompileOptions options{.passes = {},
                           .precision = {precision, {}},
                           .threads = backend_.threads(),
                           .arena_limit_bytes = arena_limit,
                           .offload_bytes_per_second = offload_bytes_per_second};
    options.passes.disabled = {"mark_winograd"};  // its kernels in f32 take workspace
    return compile(graph, backend_, options);
  }

  /// The state after some steps on the same random batches.
  State trained(const step::TrainingStep& training, const CompiledStep& step) {
    State state = step::initial_state(training, 7);
    Arena arena;
    if (step.plan.file_bytes > 0) arena.open_file(std::filesystem::temp_directory_path());
    if (step.plan.file_bytes > 0) arena.file()->reserve(step.plan.file_bytes);
    Executor executor(step.graph, step.plan, backend_, &arena);
    executor.bind_state(state);
    std::map<std::string, Tensor> batch;
    for (const GraphInput& input : training.graph.inputs())
      if (input.kind == InputKind::batch)
        executor.bind_batch(input.name, (batch[input.name] = drawn(training, input)).data());
    for (int64_t count = 0; count < 5; ++count) {
      for (const char* scalar : {"learning_rate", "seed", "step"})
        if (executor.has_scalar(scalar))
          executor.set_scalar(scalar, scalar[0] == 'l' ? 0.05 : static_cast<double>(count));
      executor.run();
    }
    return state;
  }

  static Tensor drawn(const step::TrainingStep& training, const GraphInput& input) {
    Tensor tensor(training.graph.type(input.value));
    RandomStream random(hash_name(input.name));
    for (int64_t index = 0; index < tensor.elements(); ++index)
      if (tensor.dtype() == DType::f32)
        tensor.data_as<float>()[index] = random.normal();
      else
        tensor.data_as<int32_t>()[index] = static_cast<int32_t>(random.below(10));
    return tensor;
  }

  static int64_t count(const Graph& graph, const std::string& op) {
    return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                         [&](const Node& node) { return is_recomputed(node) && (op.empty() || node.op->name == op); });
  }

  void expect_same_bits(const step::TrainingStep& training, const CompiledStep& a, const CompiledStep& b) {
    const State one = trained(training, a), other = trained(training, b);
    ASSERT_EQ(one.names(), other.names());
    for (const std::string& name : one.names()) {
      const Tensor x = one.plain(name), y = other.plain(name);
      EXPECT_EQ(std::memcmp(x.data(), y.data(), static_cast<size_t>(x.bytes())), 0) << name;
    }
  }

  Library library_ = standard_library();
  CpuBackend backend_{2};
};

TEST_F(Recompute, WithoutALimitNothingRunsTwice) {
  const auto training = step("resnet9", {.batch = 16, .shape = {3, 32, 32}, .classes = 10});
  EXPECT_EQ(count(compiled(training.graph, 0).graph, ""), 0);
  EXPECT_EQ(compiled(training.graph, 0).recompute.nodes, 0);
}

TEST_F(Recompute, Resnet9KeepsToTheLimitAndComputesTheSameBits) {
  const auto training = step("resnet9", {.batch = 16, .shape = {3, 32, 32}, .classes = 10});
  const CompiledStep free = compiled(training.graph, 0);
  for (const double share : {0.8, 0.6, 0.45}) {
    const auto limit = static_cast<int64_t>(share * static_cast<double>(free.plan.arena_bytes));
    const CompiledStep limited = compiled(training.graph, limit);
    EXPECT_LE(limited.plan.arena_bytes, limit) << share;
    EXPECT_GT(count(limited.graph, ""), 0);
    EXPECT_EQ(limited.recompute.nodes, count(limited.graph, ""));
    EXPECT_EQ(limited.plan.arena_limit_bytes, limit);
    expect_same_bits(training, free, limited);
  }
}

TEST_F(Recompute, BatchNormsAreRepeatedFromTheirSavedStatistics) {
  const auto training = step("resnet9", {.batch = 16, .shape = {3, 32, 32}, .classes = 10});
  const CompiledStep free = compiled(training.graph, 0);
  const CompiledStep limited = compiled(training.graph, free.plan.arena_bytes * 6 / 10);
  EXPECT_GT(count(limited.graph, "batch_norm_inference"), 0);
  EXPECT_EQ(count(limited.graph, "batch_norm"), 0);
  EXPECT_EQ(count(limited.graph, "running_average"), 0);
}

TEST_F(Recompute, DropoutsDrawTheSameAgain) {
  models::ModelInput input = models::find_model(library_.models, "seq2seq_attention").default_input;
  input.batch = 16;
  const auto training = step("seq2seq_attention", input, {{"dropout", "0.3"}});
  const CompiledStep free = compiled(training.graph, 0);
  const CompiledStep limited = compiled(training.graph, free.plan.arena_bytes * 7 / 10);
  EXPECT_LE(limited.plan.arena_bytes, limited.plan.arena_limit_bytes);
  EXPECT_GT(count(limited.graph, "dropout"), 0);
  expect_same_bits(training, free, limited);
}

TEST_F(Recompute, CheapNodesGoFirst) {
  if (detect_isa() != Isa::avx512)
    GTEST_SKIP() << "without AVX-512 oneDNN unrolls the images of convolutions, and this workspace fills the arena";
  const auto training = step("resnet18", {.batch = 8, .shape = {3, 64, 64}, .classes = 10});
  const CompiledStep free = compiled(training.graph, 0);
  const CompiledStep limited = compiled(training.graph, free.plan.arena_bytes * 8 / 10);
  EXPECT_LE(limited.plan.arena_bytes, limited.plan.arena_limit_bytes);
  EXPECT_EQ(count(limited.graph, "conv2d"), 0);
  EXPECT_LT(limited.recompute.seconds, 0.1 * limited.recompute.all_seconds);
}

/// Checkpoints around each block, as PyTorch's users set them by hand, cost the forward part once more: +33 %.
class TransformerRecompute : public Recompute, public testing::WithParamInterface<std::string> {};

TEST_P(TransformerRecompute, NeedsHalfOfTheArenaAndAThirdForLessThanCheckpoints) {
  models::ModelInput input = models::find_model(library_.models, GetParam()).default_input;
  input.batch = 8;
  const auto training = step(GetParam(), input);
  const int64_t free = compiled(training.graph, 0).plan.arena_bytes;
  double seconds = 0;
  for (const auto& [divisor, most] : {std::pair<int64_t, double>{2, 0.15}, {3, 0.25}}) {
    const CompiledStep limited = compiled(training.graph, free / divisor);
    EXPECT_LE(limited.plan.arena_bytes, free / divisor);
    const RecomputeReport& report = limited.recompute;
    EXPECT_LT(report.seconds, most * (report.all_seconds - report.seconds));
    EXPECT_GT(report.seconds, seconds) << "less memory takes more time";
    seconds = report.seconds;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TransformerRecompute, testing::Values("vit_tiny", "transformer_lm"),
                         [](const auto& model) { return model.param; });

TEST_F(Recompute, ATransformerComputesTheSameBits) {
  const auto training = step("vit_tiny", {.batch = 8, .shape = {3, 32, 32}, .classes = 10},
                             {{"layers", "3"}, {"width", "48"}, {"dropout", "0.1"}});
  for (const DType precision : {DType::f32, DType::bf16}) {
    const CompiledStep free = compiled(training.graph, 0, precision);
    const int64_t limit = free.plan.arena_bytes * 4 / 10;
    const CompiledStep limited = compiled(training.graph, limit, precision);
    EXPECT_LE(limited.plan.arena_bytes, limit);
    EXPECT_GT(count(limited.graph, "softmax") + count(limited.graph, "layer_norm"), 0);
    expect_same_bits(training, free, limited);
  }
}

TEST_F(Recompute, AnImpossibleLimitGivesTheLeastThatWasFound) {
  const auto training = step("resnet9", {.batch = 16, .shape = {3, 32, 32}, .classes = 10});
  const CompiledStep free = compiled(training.graph, 0), limited = compiled(training.graph, 1000);
  EXPECT_GT(limited.plan.arena_bytes, 1000);
  EXPECT_LT(limited.plan.arena_bytes, free.plan.arena_bytes / 2);
}

TEST_F(Recompute, WhereItIsEnoughNothingGoesToTheFile) {
  const auto training = step("resnet9", {.batch = 16, .shape = {3, 32, 32}, .classes = 10});
  const int64_t limit = compiled(training.graph, 0).plan.arena_bytes * 6 / 10;
  const CompiledStep without = compiled(training.graph, limit), with = compiled(training.graph, limit, DType::f32, 1e9);
  EXPECT_EQ(with.recompute.offloaded, 0);
  EXPECT_EQ(with.plan.file_bytes, 0);
  EXPECT_EQ(with.recompute.nodes, without.recompute.nodes);
}

TEST_F(Recompute, AFileMeetsLimitsThatItCannotAndTheBitsAreTheSame) {
  models::ModelInput input = models::find_model(library_.models, "transformer_lm").default_input;
  input.batch = 4;
  const auto training = step("transformer_lm", input, {{"layers", "1"}, {"heads", "2"}, {"width", "64"}});
  const CompiledStep free = compiled(training.graph, 0), least = compiled(training.graph, 1000);
  const int64_t limit = least.plan.arena_bytes * 8 / 10;
  const CompiledStep limited = compiled(training.graph, limit, DType::f32, 1e9);
  EXPECT_LE(limited.plan.arena_bytes, limit);
  int64_t stores = 0, loads = 0, bytes = 0;
  for (const Node& node : limited.graph.nodes()) {
    stores += is_store(node) ? 1 : 0;
    loads += is_load(node) ? 1 : 0;
    bytes += is_store(node) ? limited.graph.type(node.outputs[0]).bytes() : 0;
  }
  EXPECT_GT(stores, 0);
  EXPECT_EQ(stores, loads);
  EXPECT_EQ(limited.recompute.offloaded, stores);
  EXPECT_EQ(limited.recompute.offloaded_bytes, bytes);
  // So little stays in the cache, whatever the disk does: the copies are all that it costs.
  const OffloadRates rates;
  const double copies =
      static_cast<double>(bytes) * (1 / rates.into_cache + 1 / rates.out_of_cache_per_thread / backend_.threads());
  EXPECT_NEAR(limited.recompute.offload_seconds, copies, 1e-6 * copies);
  EXPECT_EQ(limited.recompute.offload_waiting_seconds, 0);
  EXPECT_GE(limited.plan.file_bytes, bytes / 2);
  expect_same_bits(training, free, limited);
}

TEST_F(Recompute, AFasterDiskTakesMore) {
  const auto training = step("resnet9", {.batch = 16, .shape = {3, 32, 32}, .classes = 10});
  const int64_t limit = compiled(training.graph, 0).plan.arena_bytes * 6 / 10;
  const auto with_disk = [&](double bytes_per_second) {
    CompileOptions options{.threads = 2, .arena_limit_bytes = limit, .offload_bytes_per_second = bytes_per_second};
    options.passes.disabled = {"mark_winograd", "recompute"};  // which would be enough
    return compile(training.graph, backend_, options);
  };
  const CompiledStep slow = with_disk(1e6), fast = with_disk(1e14);
  EXPECT_LE(slow.plan.arena_bytes, limit);
  EXPECT_LE(fast.plan.arena_bytes, limit);
  EXPECT_EQ(slow.recompute.offloaded, 0);
  EXPECT_GT(slow.recompute.nodes, 0);
  EXPECT_GT(fast.recompute.offloaded, 0);
  EXPECT_EQ(fast.recompute.nodes, 0);
}

TEST_F(Recompute, ThePassThatUsesTheFileCanBeLeftOut) {
  const auto training = step("resnet9", {.batch = 16, .shape = {3, 32, 32}, .classes = 10});
  CompileOptions options{.passes = {}, .threads = 2, .arena_limit_bytes = 1000, .offload_bytes_per_second = 1e9};
  options.passes.disabled = {"mark_winograd", "offload"};
  const CompiledStep limited = compile(training.graph, backend_, options);
  EXPECT_EQ(limited.plan.file_bytes, 0);
  EXPECT_EQ(limited.plan.arena_bytes, compiled(training.graph, 1000).plan.arena_bytes);
}

}  // namespace
}  // namespace weft
