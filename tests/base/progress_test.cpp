#include "weft/base/progress.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace weft {
namespace {

/// A stream into memory and a clock that the test turns by hand.
class ProgressTest : public testing::Test {
 protected:
  ProgressTest() : stream_(open_memstream(&text_, &size_)) {}
  ~ProgressTest() override {
    std::fclose(stream_);
    std::free(text_);
  }
  ProgressOptions options(bool terminal) {
    ProgressOptions options;
    options.terminal = terminal;
    options.clock = [this] { return now_; };
    return options;
  }
  std::string written() {
    std::fflush(stream_);
    return std::string(text_, size_);
  }
  static ProgressReport at_step(int64_t step) {
    return {.epoch = 1, .epochs = 2, .step = step, .steps = 100, .items = step * 32, .loss = 0.5};
  }

  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* stream_;
  double now_ = 0;
};

TEST_F(ProgressTest, PlainLinesComeEveryTenSeconds) {
  Progress progress(stream_, options(false));
  for (int64_t step = 1; step <= 25; ++step, now_ += 1) progress.update(at_step(step));
  EXPECT_EQ(written(),
            "epoch 1/2  step 11/100  32 images/s  batch loss 0.5000  1m 29s left\n"
            "epoch 1/2  step 21/100  32 images/s  batch loss 0.5000  1m 19s left\n");
}

TEST_F(ProgressTest, ShowsTheScaleOfTheLossAndStepsThatWereSkipped) {
  Progress progress(stream_, options(false));
  ProgressReport report = at_step(99);
  progress.update(report);
  now_ = 1;
  report = at_step(100);
  report.loss_scale = 32768;
  report.skipped_steps = 1;
  progress.update(report);
  EXPECT_NE(written().find("  batch loss 0.5000  loss scale 32768  1 skipped  done"), std::string::npos) << written();
}

TEST_F(ProgressTest, TheLastStepIsAlwaysShown) {
  Progress progress(stream_, options(false));
  progress.update(at_step(99));
  now_ = 1;
  progress.update(at_step(100));
  EXPECT_EQ(written(), "epoch 1/2  step 100/100  32 images/s  batch loss 0.5000  done\n");
}

TEST_F(ProgressTest, ATerminalLineIsRedrawnInPlaceAndEndedOnce) {
  {
    Progress progress(stream_, options(true));
    progress.update(at_step(1));
    now_ = 1;
    progress.update(at_step(2));
    now_ = 1.05;  // too early for a redraw
    progress.update(at_step(3));
    progress.finish();
  }
  EXPECT_EQ(written(), "\repoch 1/2  step 2/100  32 images/s  batch loss 0.5000  1m 38s left\033[K\n");
}

TEST_F(ProgressTest, ALineNeverWrapsOnANarrowTerminal) {
  ProgressOptions narrow = options(true);
  narrow.columns = 20;
  Progress progress(stream_, narrow);
  progress.update(at_step(1));
  now_ = 1;
  progress.update(at_step(2));
  EXPECT_EQ(written(), "\repoch 1/2  step 2/1\033[K");
}

TEST_F(ProgressTest, AMessageStandsAboveTheUpdatingLine) {
  Progress progress(stream_, options(true));
  progress.update(at_step(99));
  now_ = 1;
  progress.update(at_step(100));
  progress.message("epoch 1: accuracy 0.9");
  EXPECT_TRUE(written().ends_with("\033[K\r\033[Kepoch 1: accuracy 0.9\n")) << written();
}

TEST_F(ProgressTest, AStreamThatTakesNothingStopsNobody) {
  std::FILE* const full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  {
    Progress progress(full, options(true));
    progress.update(at_step(99));
    now_ = 1;
    EXPECT_NO_THROW(progress.update(at_step(100)));
    EXPECT_NO_THROW(progress.message("epoch 1: accuracy 0.9"));
    EXPECT_NO_THROW(progress.finish());
  }
  std::fclose(full);
}

TEST_F(ProgressTest, TheRateForgetsASlowStart) {
  Progress progress(stream_, options(false));
  progress.update(at_step(0));
  now_ = 60;  // the first step compiles
  progress.update(at_step(1));
  for (int64_t step = 2; step <= 20; ++step) {
    now_ += 1;
    progress.update(at_step(step));
  }
  EXPECT_NEAR(progress.rate(), 32, 1e-9);
}

TEST_F(ProgressTest, WaitingIsShownAboveAPercent) {
  Progress progress(stream_, options(false));
  ProgressReport report = at_step(99);
  progress.update(report);
  report.step = 100;
  report.wait_share = 0.009;
  progress.update(report);
  EXPECT_EQ(written().find("waits"), std::string::npos) << written();
  report.wait_share = 0.126;
  progress.update(report);
  EXPECT_NE(written().find("  waits for data 13 %  done"), std::string::npos) << written();
}

TEST_F(ProgressTest, OtherWorkThanTrainingHasAVerb) {
  ProgressOptions of_work = options(false);
  of_work.verb = "packed";
  of_work.item = "records";
  Progress progress(stream_, of_work);
  progress.update({.step = 0, .steps = 100, .items = 0});
  now_ = 20;
  progress.update({.step = 50, .steps = 100, .items = 50});
  EXPECT_EQ(written(), "packed 50/100 records  2.50/s  20.0 s left\n");
}

}  // namespace
}  // namespace weft
