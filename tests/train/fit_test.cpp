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

#include "tests/support/fit_rig.h"
#include "weft/base/error.h"

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

TEST(Fit, Learns) {
  Rig rig(spec_for("mlp", 6));
  std::vector<step::EpochMetrics> epochs;
  const FitResult result = rig.fit_from({}, {.on_step = {},
                                             .on_epoch = [&](const step::EpochMetrics& m) { epochs.push_back(m); },
                                             .save = {},
                                             .stop_requested = {}});
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.position.step, 36);
  ASSERT_EQ(epochs.size(), 6u);
  EXPECT_LT(epochs.back().train_loss, epochs.front().train_loss);
  EXPECT_EQ(find_metric(epochs.back().test_metrics, "accuracy"), 1.0);
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
    const FitResult stopped = first.fit_from({}, {.on_step = [&](const step::StepMetrics&) { ++steps; },
                                                  .on_epoch = {},
                                                  .save = {},
                                                  .stop_requested = [&] { return steps == stop_after; }});
    EXPECT_FALSE(stopped.finished);
    EXPECT_EQ(stopped.position.step, stop_after);
    Rig second(spec_for("resnet9", 2));
    for (const std::string& name : first.state.names()) second.state.set(name, first.state.plain(name));
    std::optional<step::EpochMetrics> last;
    const FitResult result = second.fit_from(
        stopped.position,
        {.on_step = {}, .on_epoch = [&](const step::EpochMetrics& m) { last = m; }, .save = {}, .stop_requested = {}});
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(result.position.step, 12);
    EXPECT_TRUE(last && find_metric(last->test_metrics, "accuracy"));
    EXPECT_EQ(second.weights(), straight.weights()) << "stopped after step " << stop_after;
  }
}

TEST(Fit, LastEpochMayEndEarly) {
  const spec::RunSpec spec = spec_for("mlp", 1.4);  // 6 steps, then 2.4, rounded up
  Rig straight(spec);
  std::vector<step::EpochMetrics> epochs;
  std::vector<double> rates;
  Hooks hooks;
  hooks.on_step = [&](const step::StepMetrics& m) {
    EXPECT_EQ(m.steps, 9);
    rates.push_back(m.learning_rate);
  };
  hooks.on_epoch = [&](const step::EpochMetrics& m) { epochs.push_back(m); };
  const FitResult result = straight.fit_from({}, hooks);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.position.step, 9);
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_TRUE(epochs.back().test_loss);
  EXPECT_LT(rates.back(), 0.1 * rates.front()) << "the schedule falls over the steps there are";
  Rig first(spec), second(spec);
  int64_t steps = 0;
  Hooks stopping;
  stopping.on_step = [&](const step::StepMetrics&) { ++steps; };
  stopping.stop_requested = [&] { return steps == 7; };
  const FitResult stopped = first.fit_from({}, stopping);
  EXPECT_FALSE(stopped.finished);
  for (const std::string& name : first.state.names()) second.state.set(name, first.state.plain(name));
  EXPECT_TRUE(second.fit_from(stopped.position, {}).finished);
  EXPECT_EQ(second.weights(), straight.weights());
}

TEST(Fit, PartsOfEpochsAreWholeSteps) {
  spec::RunSpec spec;
  for (const auto& [epochs, begun, steps] : std::vector<std::tuple<double, int64_t, int64_t>>{
           {9.9, 10, 476}, {1, 1, 48}, {1.5, 2, 72}, {0.01, 1, 1}, {9 + 1e-13, 9, 432}, {9.001, 10, 433}}) {
    spec.epochs = epochs;
    EXPECT_EQ(spec::begun_epochs(spec), begun) << epochs;
    EXPECT_EQ(spec::total_steps(spec, 48), steps) << epochs;
  }
  spec.epochs = 1.1;
  EXPECT_EQ(spec::total_steps(spec, 10), 11);
}

TEST(Fit, StoppedInAnEvaluationDoesItAgain) {
  for (const int64_t epoch : {0, 1}) {  // the last one too
    Rig straight(spec_for("mlp", 2)), rig(spec_for("mlp", 2));
    std::vector<double> wanted, losses;
    const auto note_into = [](std::vector<double>& all) {
      return [&all](const step::EpochMetrics& m) { all.push_back(*m.test_loss); };
    };
    straight.fit_from({}, {.on_step = {}, .on_epoch = note_into(wanted), .save = {}, .stop_requested = {}});
    // Asked after each of 6 steps and before each of 3 batches of an evaluation.
    int64_t asked = 0;
    std::vector<step::Position> saved;
    const FitResult stopped = rig.fit_from({}, {.on_step = {},
                                                .on_epoch = note_into(losses),
                                                .save = [&](const step::Position& p) { saved.push_back(p); },
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
  spec::RunSpec spec = spec_for("mlp", 4);
  spec.checkpoint.every_epochs = 2;
  spec.checkpoint.every_steps = 4;
  Rig rig(spec);
  std::vector<int64_t> saved;
  rig.fit_from({}, {.on_step = {},
                    .on_epoch = {},
                    .save = [&](const step::Position& p) { saved.push_back(p.step); },
                    .stop_requested = {}});
  // By steps 4, 8, 16, 20 (12 and 24 end an epoch), by epochs 12 and 24.
  EXPECT_EQ(saved, (std::vector<int64_t>{4, 8, 12, 16, 20, 24}));
}

TEST(Fit, AStepThatEndsAnEpochIsSavedAfterIt) {
  spec::RunSpec spec = spec_for("mlp", 4);  // of 6 steps each
  spec.checkpoint.every_epochs = 0;
  spec.checkpoint.every_steps = 12;
  Rig rig(spec);
  std::vector<std::pair<int64_t, int64_t>> saved;
  rig.fit_from({}, {.on_step = {},
                    .on_epoch = {},
                    .save = [&](const step::Position& p) { saved.emplace_back(p.step, p.step_in_epoch); },
                    .stop_requested = {}});
  EXPECT_EQ(saved, (std::vector<std::pair<int64_t, int64_t>>{{12, 0}, {24, 0}}));
}

TEST(Fit, PeopleAreToldOfAnEpochOnceItIsSaved) {
  Rig rig(spec_for("mlp", 2));
  std::string order;
  rig.fit_from({}, {.on_step = {},
                    .on_epoch = [&](const step::EpochMetrics&) { order += "record "; },
                    .tell_epoch = [&](const step::EpochMetrics&) { order += "tell "; },
                    .save = [&](const step::Position&) { order += "save "; },
                    .stop_requested = {}});
  EXPECT_EQ(order, "record save tell record save tell ");
}

TEST(Fit, EvaluatesWhenTheSpecSays) {
  spec::RunSpec spec = spec_for("mlp", 5);
  spec.evaluation.every_epochs = 2;
  Rig rig(spec);
  std::vector<bool> evaluated;
  rig.fit_from({}, {.on_step = {},
                    .on_epoch = [&](const step::EpochMetrics& m) { evaluated.push_back(m.test_loss.has_value()); },
                    .save = {},
                    .stop_requested = {}});
  EXPECT_EQ(evaluated, (std::vector<bool>{false, true, false, true, true})) << "the last epoch always";
}

TEST(Fit, LossThatIsNotFiniteStopsTheLoop) {
  spec::RunSpec spec = spec_for("mlp", 50);
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

/// Allocations from the end of the second step of an epoch to the end of its last one.
int allocations_in_loop(const spec::RunSpec& spec) {
  Rig rig(spec);
  int64_t steps = 0;
  int in_loop = -1;
  Hooks hooks;
  hooks.on_step = [&](const step::StepMetrics&) {
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
  return in_loop;
}

TEST(Fit, AllocatesNothingInTheStepLoop) {
#if !defined(_OPENMP)
  GTEST_SKIP() << "built without OpenMP: each parallel loop makes its threads anew";
#endif
  for (const char* model : {"mlp", "lenet5", "resnet9", "resnet18"}) {
    spec::RunSpec spec = spec_for(model, 2);
    spec.augment.crop_padding = 2;
    spec.augment.flip = "random";
    if (spec.model.name == "resnet18") spec.model.options["stem"] = "small";
    EXPECT_EQ(allocations_in_loop(spec), 0) << model;
  }
}

TEST(Fit, AllocatesNothingWithAnyOptimizer) {
#if !defined(_OPENMP)
  GTEST_SKIP() << "built without OpenMP: each parallel loop makes its threads anew";
#endif
  for (const char* optimizer : {"adam", "adamw", "lamb", "lars", "muon", "rmsprop"}) {
    spec::RunSpec spec = spec_for("lenet5", 2);
    spec.optimizer.name = optimizer;
    spec.clip = {.norm = 1, .value = 0.5};
    spec.ema.decay = 0.9;
    spec.lookahead.steps = 3;
    spec.optimizer.groups["biases"] = {
        .match = "*.bias", .learning_rate_factor = 2, .weight_decay = 0, .schedule = "constant"};
    EXPECT_EQ(allocations_in_loop(spec), 0) << optimizer;
    spec.batch = 4;
    spec.accumulate = 4;
    EXPECT_EQ(allocations_in_loop(spec), 0) << optimizer << ", accumulated";
  }
}

TEST(Fit, AllocatesNothingInALaterStage) {
#if !defined(_OPENMP)
  GTEST_SKIP() << "built without OpenMP: each parallel loop makes its threads anew";
#endif
  spec::RunSpec spec = spec_for("lenet5", 2);
  spec.batch_schedule = {.boundaries = {1}, .batches = {16, 8}};  // steps 8 to 12, which are counted, are of 8
  spec.optimizer.momentum_schedule.name = "one_cycle";
  spec::resolve(spec);
  EXPECT_EQ(allocations_in_loop(spec), 0);
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
