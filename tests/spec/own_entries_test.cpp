// Entries from outside: their keys are read, checked, printed and hashed as those of weft's own.
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/spec/recipe.h"
#include "weft/spec/recipe_keys.h"

namespace weft::spec {
namespace {

/// Of a mistake in what the user wrote.
template <typename Call>
std::string message_of(Call&& call) {
  return test::error_of(call, ErrorKind::usage);
}

const Key kSharpness{.name = "sharpness", .value = 2.0, .low = 1, .high = 9, .help = "of signs"};

OptimizerEntry signum() {
  return {.name = "signum",
          .summary = "signs",
          .learning_rate = 0.25,
          .keys = {kSharpness},
          .build = [](step::UpdateBuilder&, const std::vector<step::UpdatedParameter>&) {}};
}

Entries own_entries() {
  Entries entries = standard_entries();
  entries.add_optimizer(signum());
  return entries;
}

TEST(OwnEntries, KeysAreReadCheckedAndPrinted) {
  const Entries entries = own_entries();
  RunSpec spec, again;
  apply_recipe(spec, "model = 'mlp'\n[optimizer]\nname = 'signum'\nsharpness = 3\n", "recipe", entries);
  resolve(spec, entries);
  EXPECT_EQ(own_value<double>(spec.optimizer.own, "sharpness"), 3);
  EXPECT_EQ(spec.optimizer.learning_rate, 0.25);
  const std::string text = print_recipe(spec, entries);
  EXPECT_NE(text.find("\nsharpness = 3.0                  # of signs\n"), std::string::npos) << text;
  apply_recipe(again, text, "spec.toml", entries);
  resolve(again, entries);
  EXPECT_EQ(again, spec);
  EXPECT_EQ(message_of([&] { set_from_text(spec, "optimizer.sharpness=10", entries); }),
            "--set optimizer.sharpness=10: optimizer.sharpness = 10 is out of range: 1 to 9");
  EXPECT_EQ(message_of([&] { set_from_text(spec, "optimizer.sharpnes=3", entries); }),
            "--set optimizer.sharpnes=3: unknown key 'optimizer.sharpnes'; did you mean 'optimizer.sharpness'?");
}

TEST(OwnEntries, KeysThatWeftHasAlreadyAreRefused) {
  Entries entries = standard_entries();
  OptimizerEntry mine = signum();
  mine.keys = {{.name = "learning_rate", .value = 1.0}};
  entries.add_optimizer(mine);
  EXPECT_EQ(message_of([&] { recipe_keys(entries); }),
            "an entry of the library declares the key 'optimizer.learning_rate', which weft has already; rename it");
}

TEST(OwnEntries, OfMetricsAndAugmentationsAreInTheirTables) {
  Entries entries = standard_entries();
  const Key share{.name = "speckle", .value = 0.0, .low = 0, .high = 1, .help = "share of pixels"};
  entries.add_augmentation({.name = "speckle", .summary = "", .keys = {share}, .make = [](const AugmentSpec&) {
                              return std::optional<data::PixelChange>();
                            }});
  entries.add_metric({.name = "hits",
                      .summary = "",
                      .keys = {{.name = "at", .value = int64_t{3}, .low = 1, .high = 100, .help = "answers"}},
                      .value = [](std::span<const double>, const MetricTotals&) { return std::optional(1.0); }});
  RunSpec spec, again;
  apply_recipe(spec, "model = 'mlp'\n[augment]\nspeckle = 0.25\n[metrics]\nnames = 'auto, hits'\nat = 5\n", "recipe",
               entries);
  resolve(spec, entries);
  EXPECT_EQ(own_value<double>(spec.augment.own, "speckle"), 0.25);
  EXPECT_EQ(own_value<int64_t>(spec.metrics.own, "at"), 5);
  EXPECT_EQ(spec.metrics.names, "auto, hits");
  apply_recipe(again, print_recipe(spec, entries), "spec.toml", entries);
  resolve(again, entries);
  EXPECT_EQ(again, spec);
}

TEST(OwnEntries, KeysAtTheirDefaultLeaveNoTraceInTheHash) {
  const Entries entries = own_entries();
  RunSpec spec;
  spec.model.name = "mlp";
  spec.optimizer.name = "signum";
  const std::string before = spec_hash(spec, entries);
  fill_own_keys(spec, entries);
  EXPECT_EQ(spec.optimizer.own.size(), 1u);
  EXPECT_EQ(spec_hash(spec, entries), before);
  set_from_text(spec, "optimizer.sharpness=3", entries);
  EXPECT_NE(spec_hash(spec, entries), before);
}

TEST(OwnEntries, WhatAnotherOptimizerReadsHasNoEffect) {
  const Entries entries = own_entries();
  RunSpec spec;
  spec.model.name = "mlp";
  set_from_text(spec, "optimizer.sharpness=3", entries);
  resolve(spec, entries);
  EXPECT_EQ(keys_without_effect(spec, data::TargetKind::sample_class, entries),
            std::vector<std::string>{"optimizer.sharpness = 3.0 with optimizer.name = 'sgd'"});
}

TEST(OwnEntries, AreUnknownWithoutTheirLibrary) {
  RunSpec spec;
  EXPECT_EQ(
      message_of([&] { set_from_text(spec, "optimizer.name=signum"); }),
      "--set optimizer.name=signum: optimizer.name = 'signum' is not known; choose one of: sgd, adam, adamw, lamb, "
      "lars, muon, rmsprop");
  spec.model.name = "mlp";
  spec.optimizer.name = "rmspro";
  EXPECT_EQ(message_of([&] { resolve(spec); }), "there is no optimizer 'rmspro'; did you mean 'rmsprop'?");
}

TEST(OwnEntries, HaveToBeNewCompleteAndToAgreeOnKeys) {
  Entries entries = own_entries();
  EXPECT_EQ(message_of([&] { entries.add_optimizer(signum()); }),
            "there is optimizer 'signum' already; choose another name");
  OptimizerEntry other = signum();
  other.name = "other";
  other.keys[0].high = 5;
  EXPECT_EQ(message_of([&] { entries.add_optimizer(other); }),
            "optimizer 'other' declares the key 'sharpness' otherwise than 'signum' does; choose another name for it");
  EXPECT_EQ(message_of([&] { entries.add_loss({.name = "empty", .summary = ""}); }),
            "the loss 'empty' is not complete: it needs a build function");
}

}  // namespace
}  // namespace weft::spec
