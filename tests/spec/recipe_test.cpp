// Recipes: what is read is what was written, and what is wrong is said with its place.
#include "weft/spec/recipe.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/data/open_dataset.h"
#include "weft/data/texts/utf8.h"
#include "weft/program/run_data.h"
#include "weft/spec/recipe_keys.h"

namespace weft::spec {
namespace {

std::string error_of(const std::string& recipe) {
  RunSpec spec;
  try {
    apply_recipe(spec, recipe, "r.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

std::string error_of_set(const std::string& assignment) {
  RunSpec spec;
  try {
    set_from_text(spec, assignment);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

std::string error_of_resolve(const RunSpec& given) {
  RunSpec spec = given;
  try {
    resolve(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Recipe, PrintedSpecReadsBackEqual) {
  RunSpec spec;
  spec.model.name = "resnet9";
  spec.model.options = {{"width", "32"}, {"odd \"name\"", "a\\b"}};
  spec.data = "idx:/a b/im\tages,\"labels\"";
  spec.optimizer.learning_rate = 0.1 + 0.2;
  spec.optimizer.nesterov = true;
  spec.schedule.rise = 1.0 / 3;
  spec.schedule.end_divisor = 1e4;
  spec.seed = 8'999'999'999'999'999;
  spec.threads = 3;
  resolve(spec);
  RunSpec again;
  apply_recipe(again, print_recipe(spec), "spec.toml");
  resolve(again);
  EXPECT_EQ(again, spec);
}

TEST(Recipe, PathsOfAnyBytesAreUtf8AndReadBackEqual) {
  // Latin-1; bytes that begin characters which do not follow; a character that stands for a byte; UTF-8
  for (const std::string path : {"l\xe9/a", "\xff\xfe\xc3", "\xc3(", "\xf4\x8f\xbb\xa9", "gr\xc3\xbc\xc3\x9f"}) {
    RunSpec spec;
    spec.model.name = "mlp";
    spec.data = "csv:" + path;
    resolve(spec);
    const std::string text = print_recipe(spec);
    EXPECT_NO_THROW(data::require_utf8(text, "spec.toml"));
    RunSpec again;
    apply_recipe(again, text, "spec.toml");
    EXPECT_EQ(again.data, spec.data);
  }
  RunSpec readable;
  readable.model.name = "mlp";
  readable.data = "csv:gr\xc3\xbc\xc3\x9f";
  resolve(readable);
  EXPECT_NE(print_recipe(readable).find("gr\xc3\xbc\xc3\x9f"), std::string::npos);
}

TEST(Recipe, EveryFieldIsPrintedWithItsHelp) {
  RunSpec spec;
  spec.model.name = "mlp";
  resolve(spec);
  const std::string text = print_recipe(spec);
  for (const BoundKey& key : bind_keys(spec)) {
    const bool is_printed = text.find("# " + key.help) != std::string::npos;
    EXPECT_NE(is_printed, key.is_quiet) << key.name;
  }
}

TEST(Recipe, KeepsWhatItDoesNotName) {
  RunSpec spec;
  spec.epochs = 17;
  apply_recipe(spec, "batch = 32\n[optimizer]\nlearning_rate = 1\n", "r.toml");
  EXPECT_EQ(spec.epochs, 17);
  EXPECT_EQ(spec.batch, 32);
  EXPECT_EQ(spec.optimizer.learning_rate, 1.0);
}

TEST(Recipe, ModelMayBeATextOrATableWithOptions) {
  RunSpec a, b;
  apply_recipe(a, "model = 'mlp'", "r.toml");
  apply_recipe(b, "[model]\nname = 'mlp'\nwidth = 64\ndeep = true\nscale = 0.5\n", "r.toml");
  EXPECT_EQ(a.model.name, "mlp");
  EXPECT_EQ(b.model.name, "mlp");
  EXPECT_EQ(b.model.options, (models::ModelOptions{{"width", "64"}, {"deep", "true"}, {"scale", "0.5"}}));
}

TEST(Recipe, AnUnknownTableIsWrongEvenIfEmpty) {
  EXPECT_EQ(error_of("[optimiser]\n"), "r.toml:1: there is no section [optimiser]; did you mean 'optimizer'?");
  EXPECT_EQ(error_of("model = 'mlp'\n[data]\n").substr(0, 39), "r.toml:2: there is no section [data]; k");
  EXPECT_EQ(error_of("[model]\n[optimizer]\n[optimizer.groups]\n"), "no error");
  RunSpec spec;
  spec.model.name = "mlp";
  apply_recipe(spec, "[optimizer.groups.head]\n", "r.toml");
  EXPECT_EQ(error_of_resolve(spec).substr(0, 44), "optimizer.groups.head matches nothing: it ha");
}

TEST(Recipe, KeysThatDoNothingAreNamed) {
  RunSpec spec;
  spec.model.name = "mlp";
  apply_recipe(spec, "[optimizer]\nname = 'adamw'\n", "r.toml");
  resolve(spec);
  EXPECT_TRUE(keys_without_effect(spec, data::TargetKind::sample_class).empty());
  apply_recipe(spec, "[optimizer]\nmomentum = 0.5\nbeta1 = 0.8\n[loss]\nlabel_smoothing = 0.1\n", "r.toml");
  EXPECT_EQ(keys_without_effect(spec, data::TargetKind::sample_class),
            std::vector<std::string>{"optimizer.momentum = 0.5 with optimizer.name = 'adamw'"});
  EXPECT_EQ(keys_without_effect(spec, data::TargetKind::values).back(),
            "loss.label_smoothing = 0.1 where values are predicted");
}

TEST(Recipe, KeysOfWaysThatAreNotTakenAreNamed) {
  const auto unused = [](const std::string& recipe) {
    RunSpec spec;
    spec.model.name = "mlp";
    apply_recipe(spec, recipe, "r.toml");
    resolve(spec);
    return keys_without_effect(spec, data::TargetKind::sample_class);
  };
  EXPECT_EQ(unused("[pipeline]\nmicro_batches = 7\n[shard]\ntensor = '*=outputs'\n"),
            (std::vector<std::string>{"shard.tensor = \"*=outputs\" with mesh.tensor = 1",
                                      "pipeline.micro_batches = 7 with mesh.pipeline = 1"}));
  EXPECT_EQ(unused("[mesh]\npipeline = 2\n[pipeline]\nchunks = 5\n"),
            std::vector<std::string>{"pipeline.chunks = 5 with pipeline.schedule = '1f1b'"});
  EXPECT_EQ(unused("[compression]\nrank = 2\n[lookahead]\nalpha = 0.25\n"),
            (std::vector<std::string>{"lookahead.alpha = 0.25 with lookahead.steps = 0",
                                      "compression.rank = 2 with compression.method = 'none'"}));
}

TEST(Recipe, NoTomlNamesTheLine) {
  EXPECT_EQ(error_of("epochs = 2\nbatch 3\n").substr(0, 22), "r.toml:2: is no TOML: ");
  EXPECT_EQ(error_of("epochs = 2\nepochs = 3\n").substr(0, 22), "r.toml:2: is no TOML: ");
  EXPECT_EQ(error_of("epochs = 2\n[ = 3\n").substr(0, 22), "r.toml:2: is no TOML: ");
  EXPECT_EQ(error_of("[[=").substr(0, 22), "r.toml:1: is no TOML: ");
  EXPECT_EQ(error_of("epochs =\u0413").substr(0, 22), "r.toml:1: is no TOML: ");
}

TEST(RunSpec, SetFromTextTakesEachKind) {
  RunSpec spec;
  set_from_text(spec, "optimizer.learning_rate=0.2");
  set_from_text(spec, "optimizer.nesterov=true");
  set_from_text(spec, "epochs=3");
  set_from_text(spec, "data=\"cifar10:/x=y\"");
  set_from_text(spec, "model.width=64");
  EXPECT_EQ(spec.optimizer.learning_rate, 0.2);
  EXPECT_TRUE(spec.optimizer.nesterov);
  EXPECT_EQ(spec.epochs, 3);
  EXPECT_EQ(spec.data, "cifar10:/x=y");
  EXPECT_EQ(spec.model.options.at("width"), "64");
}

TEST(RunSpec, SetFromTextSaysWhatIsWrong) {
  EXPECT_EQ(error_of_set("epochs"), "--set epochs: wants KEY=VALUE, such as optimizer.learning_rate=0.1");
  EXPECT_EQ(error_of_set("epoch=3"), "--set epoch=3: unknown key 'epoch'; did you mean 'epochs'?");
  EXPECT_EQ(error_of_set("batch=3x"), "--set batch=3x: batch wants a whole number, or auto, got '3x'");
  EXPECT_EQ(error_of_set("batch=99999999999999999999"),
            "--set batch=99999999999999999999: batch wants a whole number, or auto, got '99999999999999999999'");
  EXPECT_EQ(error_of_set("optimizer.nesterov=yes"),
            "--set optimizer.nesterov=yes: optimizer.nesterov wants true or false, got 'yes'");
}

TEST(RunSpec, ResolveFillsInTheOptimisersDefaults) {
  RunSpec sgd, adamw;
  sgd.model.name = adamw.model.name = "mlp";
  adamw.optimizer.name = "adamw";
  resolve(sgd);
  resolve(adamw);
  EXPECT_EQ(sgd.optimizer.learning_rate, 0.05);
  EXPECT_EQ(adamw.optimizer.learning_rate, 0.001);
  EXPECT_EQ(adamw.optimizer.weight_decay, 0.01);
  EXPECT_EQ(sgd.optimizer.momentum, 0.9);
  RunSpec rmsprop;
  rmsprop.model.name = "mlp";
  rmsprop.optimizer.name = "rmsprop";
  resolve(rmsprop);
  EXPECT_EQ(rmsprop.optimizer.momentum, 0);
  EXPECT_GE(sgd.threads, 1);
}

TEST(RunSpec, ResolveRefusesWhatDoesNotFitTogether) {
  RunSpec spec;
  EXPECT_EQ(error_of_resolve(spec), "no model given; name a recipe or add --model M (`weft models` lists them)");
  spec.model.name = "mlp";
  spec.epochs = 2;
  spec.schedule.warmup_epochs = 3;
  EXPECT_EQ(error_of_resolve(spec), "schedule.warmup_epochs = 3 is longer than the run of 2 epochs; lower it");
  spec.schedule.name = "one_cycle";
  EXPECT_NE(error_of_resolve(spec).find("one_cycle warms up by itself"), std::string::npos);
}

TEST(RunSpec, HashFollowsWhatDecidesTheWeights) {
  RunSpec spec;
  spec.model.name = "mlp";
  resolve(spec);
  RunSpec other = spec;
  other.threads += 1;
  other.checkpoint.keep = 9;
  EXPECT_EQ(spec_hash(spec), spec_hash(other));
  other.seed = 2;
  EXPECT_NE(spec_hash(spec), spec_hash(other));
  other = spec;
  other.model.options["hidden"] = "64";
  EXPECT_NE(spec_hash(spec), spec_hash(other));
}

TEST(RunSpec, HashDoesNotDependOnFieldsAtTheirDefault) {
  RunSpec spec;
  spec.model.name = "mlp";
  spec.seed = 3;
  // FNV-1a of just these two lines: whatever fields are added, the hash of this spec stays.
  EXPECT_EQ(spec_hash(spec), fmt::format("{:016x}", hash_name("model.name = \"mlp\"\nseed = 3\n")));
}

/// Of the sgd recipes that were hashed when momentum had one default for all optimisers.
TEST(RunSpec, HashDoesNotShowTheMomentumThatSgdHasByDefault) {
  RunSpec spec;
  spec.model.name = "mlp";
  const std::string before = spec_hash(spec);
  spec.optimizer.momentum = 0.9;
  EXPECT_EQ(spec_hash(spec), before);
  spec.optimizer.momentum = 0.8;
  EXPECT_EQ(spec_hash(spec), fmt::format("{:016x}", hash_name("model.name = \"mlp\"\noptimizer.momentum = 0.8\n")));
}

TEST(RunSpec, HashFollowsGroups) {
  RunSpec spec;
  spec.model.name = "mlp";
  const std::string before = spec_hash(spec);
  set_from_text(spec, "optimizer.groups.head.match=fc.*");
  const std::string grouped = spec_hash(spec);
  EXPECT_NE(grouped, before);
  set_from_text(spec, "optimizer.groups.head.learning_rate_factor=10");
  EXPECT_NE(spec_hash(spec), grouped);
}

TEST(Recipe, GroupsAndListsReadBackEqual) {
  RunSpec spec;
  apply_recipe(
      spec,
      "model = 'mlp'\naccumulate = 4\n[optimizer]\nname = 'muon'\n[optimizer.groups.head]\nmatch = 'fc.*'\n"
      "learning_rate_factor = 10\nweight_decay = 0\n[optimizer.groups.stem-2]\nmatch = 'regex:conv1\\..*'\n"
      "schedule = 'constant'\n[schedule]\nname = 'piecewise'\nboundaries = [1, 2.5]\nfactors = [1, 0.1, 0.01]\n",
      "r.toml");
  resolve(spec);
  EXPECT_EQ(spec.optimizer.groups.size(), 2u);
  EXPECT_EQ(spec.optimizer.groups.at("head").learning_rate_factor, 10);
  EXPECT_EQ(spec.schedule.boundaries, (std::vector<double>{1, 2.5}));
  RunSpec again;
  apply_recipe(again, print_recipe(spec), "spec.toml");
  resolve(again);
  EXPECT_EQ(again, spec);
}

TEST(RunSpec, SetFromTextTakesListsAndGroups) {
  RunSpec spec;
  set_from_text(spec, "schedule.boundaries=[3, 6]");
  set_from_text(spec, "schedule.factors=1,0.1,1e-2");
  set_from_text(spec, "optimizer.groups.head.match=fc.*");
  EXPECT_EQ(spec.schedule.boundaries, (std::vector<double>{3, 6}));
  EXPECT_EQ(spec.schedule.factors, (std::vector<double>{1, 0.1, 0.01}));
  EXPECT_EQ(spec.optimizer.groups.at("head").match, "fc.*");
  EXPECT_EQ(error_of_set("schedule.factors=1,x"),
            "--set schedule.factors=1,x: schedule.factors wants a list of numbers, such as [1, 0.1], got '1,x'");
}

TEST(RunSpec, ResolveRefusesSchedulesThatAreIncomplete) {
  RunSpec spec;
  spec.model.name = "mlp";
  spec.schedule.name = "piecewise";
  EXPECT_EQ(error_of_resolve(spec),
            "schedule.name = 'piecewise' wants schedule.boundaries, such as [30, 60, 80] (epochs)");
  spec.schedule.boundaries = {2, 1};
  EXPECT_EQ(error_of_resolve(spec), "schedule.boundaries = [2, 1] must rise from each to the next");
  spec.schedule.boundaries = {1, 2};
  spec.schedule.factors = {1, 0.1};
  EXPECT_EQ(error_of_resolve(spec), "schedule.factors wants 3 numbers for 2 boundaries, got 2");
  spec.schedule.lines = true;
  EXPECT_EQ(error_of_resolve(spec), "no error");
  spec.optimizer.groups["head"].match = "";
  EXPECT_EQ(error_of_resolve(spec).substr(0, 51), "optimizer.groups.head matches nothing: it has no ma");
}

TEST(RunSpec, ThreadsOfAnotherMachineAreAtMostTheCoresHere) {
  RunSpec spec;
  spec.threads = 1024;
  choose_threads(spec, 0);
  EXPECT_EQ(spec.threads, available_cores());
  choose_threads(spec, 7);
  EXPECT_EQ(spec.threads, 7);
  spec.threads = 1;
  choose_threads(spec, 0);
  EXPECT_EQ(spec.threads, 1);
}

TEST(RunData, PathsBecomeAbsolute) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(
      data::with_absolute_paths(data::standard_dataset_kinds(), "idx:a,../b,/c/d,e.gz"),
      "idx:" + here + "/a," + std::filesystem::current_path().parent_path().string() + "/b,/c/d," + here + "/e.gz");
  EXPECT_EQ(data::with_absolute_paths(data::standard_dataset_kinds(), "cifar10:x"), "cifar10:" + here + "/x");
  EXPECT_EQ(data::with_absolute_paths(data::standard_dataset_kinds(), "fashion-mnist"), "fashion-mnist");
}

TEST(RunData, DifferenceIsSaidInWords) {
  const DataDescription then{{"idx", {1, 8, 8}, 4, {}}, {{0.5f}, {0.25f}}, 320};
  EXPECT_EQ(difference_of(then, parse_data_description(print_data_description(then), "data.json")), "");
  DataDescription now = then;
  now.samples = 321;
  EXPECT_EQ(difference_of(then, now), "there were 320 samples, now 321");
  now = then;
  now.info.sample_shape = {1, 9, 9};
  EXPECT_EQ(difference_of(then, now), "images were (1,8,8), now (1,9,9)");
  now = then;
  now.info.classes = 5;
  EXPECT_EQ(difference_of(then, now), "there were 4 classes, now 5");
  now = then;
  now.target_checksum = "0";
  EXPECT_EQ(difference_of(then, now), "") << "a run of before has none";
  DataDescription checked = then;
  checked.target_checksum = "1";
  EXPECT_EQ(difference_of(checked, now), "samples have other labels");
  now = then;
  now.statistics.mean[0] = 0.75f;
  EXPECT_EQ(difference_of(then, now), "the mean was [0.5], now [0.75]");
}

TEST(Recipe, ChosenKeysReadBackWhateverTheirCommentsHold) {
  RunSpec spec, again;
  apply_recipe(spec, "data = 'csv:a b.csv'\nepochs = 7\n[model]\nname = 'mlp'\nhidden = '8'\n", "r.toml");
  const std::string strange = "two\nlines, a \x01 and " + std::string(300, 'x') + " data = 3";
  const std::string text = print_recipe(
      spec, "first\nsecond", {{"data", strange}, {"epochs", ""}, {"model.name", "m"}, {"model.hidden", "h"}});
  EXPECT_TRUE(text.starts_with("# first\n# second\n\n# two lines, a ? and\n# xxx")) << text;
  apply_recipe(again, text, "printed");
  EXPECT_EQ(again, spec);
}

}  // namespace
}  // namespace weft::spec
