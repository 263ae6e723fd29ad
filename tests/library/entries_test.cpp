// Entries that programs add: what is missing or does not fit is refused by name.
#include "weft/library/entries.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/spec/run_spec.h"

namespace weft {
namespace {

/// Of a mistake in what the user wrote.
template <typename Call>
std::string message_of(Call&& call) {
  return test::error_of(call, ErrorKind::usage);
}

MetricEntry top_three() {
  return {.name = "top_three", .summary = "", .outputs = {"top_three"}, .build = [](const MetricCall&) {}};
}

TEST(Entries, AMetricNeedsAValueOrAnOutput) {
  Entries entries = standard_entries();
  EXPECT_EQ(message_of([&] { entries.add_metric({.name = "top_three", .summary = ""}); }),
            "the metric 'top_three' is not complete: it needs a value function, or outputs that build() adds");
  entries.add_metric(top_three());
  EXPECT_EQ(entries.metrics.back().label, "top_three");
  EXPECT_EQ(message_of([&] { entries.add_metric(top_three()); }),
            "there is metric 'top_three' already; choose another name");
}

TEST(Entries, AnAugmentationNeedsAMakeFunction) {
  Entries entries = standard_entries();
  EXPECT_EQ(message_of([&] { entries.add_augmentation({.name = "speckle", .summary = ""}); }),
            "the augmentation 'speckle' is not complete: it needs a make function");
}

TEST(Entries, AnAugmentationCannotDeclareAnothersKeyOtherwise) {
  Entries entries = standard_entries();
  const AugmentationEntry fog{.name = "fog",
                              .summary = "",
                              .keys = {{.name = "brightness", .value = 0.0, .low = 0, .high = 2}},
                              .make = [](const spec::AugmentSpec&) { return std::optional<data::PixelChange>(); }};
  EXPECT_EQ(message_of([&] { entries.add_augmentation(fog); }),
            "augmentation 'fog' declares the key 'brightness' otherwise than 'color' does; choose another name for it");
}

TEST(Entries, ATaskNamesItsLossAndMetrics) {
  Entries entries = standard_entries();
  EXPECT_EQ(message_of([&] { entries.add_task({.name = "ranking", .summary = "", .loss = "hinge"}); }),
            "the task 'ranking' has the loss 'hinge', which there is not; add it before the task");
  EXPECT_EQ(message_of([&] { entries.add_task({.name = "ranking", .summary = "", .metrics = {"ndcg"}}); }),
            "the task 'ranking' has the metric 'ndcg', which there is not; add it before the task");
  EXPECT_EQ(message_of([&] {
              entries.add_task({.name = "ranking", .summary = "", .metrics = {"r2"}, .decided_by = "accuracy"});
            }),
            "the task 'ranking' is decided by 'accuracy', which is none of its metrics; add it to them");
}

TEST(Entries, AnUnknownTaskNamesThoseThatThereAre) {
  const std::string message = message_of([] { task_entry(standard_entries(), "ranking"); });
  EXPECT_EQ(message,
            "there is no task 'ranking'; known: classification, regression, language_model, translation, "
            "transcription, segmentation. A program that adds it to its library can open such data");
}

}  // namespace
}  // namespace weft
