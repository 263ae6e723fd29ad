// The loop on a small made-up data set: it learns, repeats itself bitwise, goes on where it stood, and allocates
// nothing.
#include "weft/train/fit.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/train/run_data.h"
#include "weft/train/step.h"

namespace {

// Every operator new of the program comes through here; those that oneDNN or OpenMP call are theirs, not weft's.
std::atomic<bool> counting{false};
std::atomic<int> counted{0};

bool is_foreign(const void* caller) {
  Dl_info info{};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  return std::strstr(info.dli_fname, "libdnnl") != nullptr || std::strstr(info.dli_fname, "libgomp") != nullptr;
}

void* allocate_or_null(size_t bytes, size_t alignment, const void* caller) {
  if (counting.load(std::memory_order_relaxed) && !is_foreign(caller)) ++counted;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* allocate(size_t bytes, size_t alignment, const void* caller) {
  void* memory = allocate_or_null(bytes, alignment, caller);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// Not inlined: the compiler would take the malloc behind operator new and this free for a mismatch.
[[gnu::noinline]] void release(void* memory) { std::free(memory); }

constexpr size_t kDefaultAlignment = alignof(std::max_align_t);

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes, kDefaultAlignment, __builtin_return_address(0)); }
void* operator new[](size_t bytes) { return allocate(bytes, kDefaultAlignment, __builtin_return_address(0)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, kDefaultAlignment, __builtin_return_address(0));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { release(memory); }

namespace weft::train {
namespace {

constexpr int64_t kSize = 16;  // pixels on a side

/// Images whose brightness says their class.
data::MemoryDataset make_data(int64_t samples) {
  std::vector<uint8_t> pixels, labels;
  for (int64_t sample = 0; sample < samples; ++sample) {
    labels.push_back(static_cast<uint8_t>(sample % 3));
    for (int64_t pixel = 0; pixel < kSize * kSize; ++pixel)
      pixels.push_back(static_cast<uint8_t>(60 * (sample % 3) + (pixel * 7 + sample * 13) % 40));
  }
  return data::MemoryDataset({"bright", {1, kSize, kSize}, 3, {}}, std::move(pixels), std::move(labels));
}

/// Everything that a loop needs, over one model.
class Rig {
 public:
  explicit Rig(RunSpec run_spec)
      : spec(std::move(run_spec)),
        registry(ops::make_registry()),
        backend(static_cast<int>(spec.threads)),
        training_set(make_data(100)),
        test_set(make_data(40)),
        description{training_set.info(), data::channel_statistics(training_set)},
        step(build_training_step(registry, spec, model_input(description, spec.batch))),
        training([this](int64_t) { return step.graph; }, backend, {.passes = {}, .threads = backend.threads()}),
        evaluation(
            [this](int64_t batch) { return build_evaluation_step(registry, spec, model_input(description, batch)); },
            backend, {.passes = {}, .threads = backend.threads()}),
        state(initial_state(step, static_cast<uint64_t>(spec.seed))),
        training_loader(training_set, training_loader_options(spec, description)),
        test_loader(test_set, evaluation_loader_options(spec, description)) {}

  FitResult fit_from(const Position& position, const Hooks& hooks) {
    return fit({spec, training, evaluation, state, training_loader, &test_loader}, position, hooks);
  }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const std::string& name : state.names()) {
      const Tensor tensor = state.plain(name);
      all.insert(all.end(), tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements());
    }
    return all;
  }

  RunSpec spec;
  OpRegistry registry;
  CpuBackend backend;
  data::MemoryDataset training_set, test_set;
  DataDescription description;
  TrainingStep step;
  StepCache training, evaluation;
  State state;
  data::Loader training_loader, test_loader;
};

RunSpec spec_for(const std::string& model, int64_t epochs) {
  RunSpec spec;
  spec.model.name = model;
  spec.epochs = epochs;
  spec.batch = 16;  // 6 steps an epoch; the test set of 40 ends in a batch of 8
  spec.threads = 2;
  spec.optimizer.learning_rate = 0.02;
  resolve(spec);
  return spec;
}

TEST(Fit, Learns) {
  Rig rig(spec_for("mlp", 6));
  std::vector<EpochMetrics> epochs;
  const FitResult result = rig.fit_from({}, {.on_step = {},
                                             .on_epoch = [&](const EpochMetrics& m) { epochs.push_back(m); },
                                             .save = {},
                                             .stop_requested = {}});
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.position.step, 36);
  ASSERT_EQ(epochs.size(), 6u);
  EXPECT_LT(epochs.back().train_loss, epochs.front().train_loss);
  EXPECT_EQ(epochs.back().test_accuracy, 1.0);
}

TEST(Fit, SameSeedTwiceIsBitwiseTheSame) {
  for (const char* model : {"mlp", "resnet9"}) {
    Rig a(spec_for(model, 2)), b(spec_for(model, 2));
    a.fit_from({}, {});
    b.fit_from({}, {});
    EXPECT_EQ(a.weights(), b.weights()) << model;
  }
}

TEST(Fit, StoppedAnywhereAndContinuedIsBitwiseTheSame) {
  Rig straight(spec_for("resnet9", 2));
  straight.fit_from({}, {});
  for (const int64_t stop_after : {5, 6, 7}) {
    Rig first(spec_for("resnet9", 2));
    int64_t steps = 0;
    const FitResult stopped = first.fit_from({}, {.on_step = [&](const StepMetrics&) { ++steps; },
                                                  .on_epoch = {},
                                                  .save = {},
                                                  .stop_requested = [&] { return steps == stop_after; }});
    EXPECT_FALSE(stopped.finished);
    EXPECT_EQ(stopped.position.step, stop_after);
    Rig second(spec_for("resnet9", 2));
    for (const std::string& name : first.state.names()) second.state.set(name, first.state.plain(name));
    std::optional<EpochMetrics> last;
    const FitResult result = second.fit_from(
        stopped.position,
        {.on_step = {}, .on_epoch = [&](const EpochMetrics& m) { last = m; }, .save = {}, .stop_requested = {}});
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(result.position.step, 12);
    EXPECT_TRUE(last && last->test_accuracy);
    EXPECT_EQ(second.weights(), straight.weights()) << "stopped after step " << stop_after;
  }
}

TEST(Fit, StoppedInAnEvaluationDoesItAgain) {
  for (const int64_t epoch : {0, 1}) {  // the last one too
    Rig straight(spec_for("mlp", 2)), rig(spec_for("mlp", 2));
    std::vector<double> wanted, losses;
    const auto note_into = [](std::vector<double>& all) {
      return [&all](const EpochMetrics& m) { all.push_back(*m.test_loss); };
    };
    straight.fit_from({}, {.on_step = {}, .on_epoch = note_into(wanted), .save = {}, .stop_requested = {}});
    // Asked after each of 6 steps and before each of 3 batches of an evaluation.
    int64_t asked = 0;
    std::vector<Position> saved;
    const FitResult stopped = rig.fit_from({}, {.on_step = {},
                                                .on_epoch = note_into(losses),
                                                .save = [&](const Position& p) { saved.push_back(p); },
                                                .stop_requested = [&] { return ++asked == 9 * epoch + 8; }});
    EXPECT_FALSE(stopped.finished);
    EXPECT_EQ(stopped.position.epoch, epoch);
    EXPECT_EQ(stopped.position.step_in_epoch, 6);
    ASSERT_FALSE(saved.empty());
    EXPECT_EQ(saved.back().step, 6 * epoch + 6);
    EXPECT_EQ(saved.back().step_in_epoch, 6) << "before the evaluation";
    const FitResult result =
        rig.fit_from(saved.back(), {.on_step = {}, .on_epoch = note_into(losses), .save = {}, .stop_requested = {}});
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(losses, wanted);
    EXPECT_EQ(rig.weights(), straight.weights());
  }
}

TEST(Fit, SavesWhenTheSpecSays) {
  RunSpec spec = spec_for("mlp", 4);
  spec.checkpoint.every_epochs = 2;
  spec.checkpoint.every_steps = 4;
  Rig rig(spec);
  std::vector<int64_t> saved;
  rig.fit_from({}, {.on_step = {},
                    .on_epoch = {},
                    .save = [&](const Position& p) { saved.push_back(p.step); },
                    .stop_requested = {}});
  // By steps 4, 8, 16, 20 (12 and 24 end an epoch), by epochs 12 and 24.
  EXPECT_EQ(saved, (std::vector<int64_t>{4, 8, 12, 16, 20, 24}));
}

TEST(Fit, EvaluatesWhenTheSpecSays) {
  RunSpec spec = spec_for("mlp", 5);
  spec.evaluation.every_epochs = 2;
  Rig rig(spec);
  std::vector<bool> evaluated;
  rig.fit_from({}, {.on_step = {},
                    .on_epoch = [&](const EpochMetrics& m) { evaluated.push_back(m.test_loss.has_value()); },
                    .save = {},
                    .stop_requested = {}});
  EXPECT_EQ(evaluated, (std::vector<bool>{false, true, false, true, true})) << "the last epoch always";
}

TEST(Fit, LossThatIsNotFiniteStopsTheLoop) {
  RunSpec spec = spec_for("mlp", 50);
  spec.optimizer.learning_rate = 1e6;
  spec.schedule.name = "constant";
  Rig rig(spec);
  try {
    rig.fit_from({}, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_NE(std::string(error.what()).find("learning rate 1e+06"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("at step "), std::string::npos) << error.what();
  }
}

TEST(Fit, AllocatesNothingInTheStepLoop) {
#if !defined(_OPENMP)
  GTEST_SKIP() << "built without OpenMP: each parallel loop makes its threads anew";
#endif
  for (const char* model : {"mlp", "lenet5", "resnet9", "resnet18"}) {
    RunSpec spec = spec_for(model, 2);
    spec.augment.crop_padding = 2;
    spec.augment.flip = "random";
    if (spec.model.name == "resnet18") spec.model.options["stem"] = "small";
    Rig rig(spec);
    int64_t steps = 0;
    int in_loop = -1;
    Hooks hooks;
    // From the end of the second step of an epoch to the end of its last one: no evaluation in between.
    hooks.on_step = [&](const StepMetrics&) {
      ++steps;
      if (steps == 8) {
        counted = 0;
        counting = true;
      }
      if (steps == 12) {
        counting = false;
        in_loop = counted;
      }
    };
    rig.fit_from({}, hooks);
    EXPECT_EQ(in_loop, 0) << model;
  }
}

TEST(Fit, TheCountingSeesAllocations) {
  counted = 0;
  counting = true;
  std::vector<int> grown(1000);
  counting = false;
  EXPECT_GE(counted.load(), 1) << grown.size();
}

}  // namespace
}  // namespace weft::train
