#include "weft/spec/usual_names.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/spec/recipe_keys.h"

namespace weft::spec {
namespace {

std::string error_of_setting(const std::string& assignment) {
  RunSpec spec;
  return test::error_of([&] { set_from_text(spec, assignment); }, ErrorKind::usage);
}

TEST(UsualNames, AreAnsweredWithTheKey) {
  EXPECT_EQ(error_of_setting("lr=0.1"), "--set lr=0.1: unknown key 'lr'; it is called 'optimizer.learning_rate' here");
  EXPECT_EQ(error_of_setting("batch-size=8"),
            "--set batch-size=8: unknown key 'batch-size'; it is called 'batch' here");
}

TEST(UsualNames, APartOfAKeyIsAnsweredWithTheWholeOne) {
  EXPECT_EQ(error_of_setting("weight_decay=1"),
            "--set weight_decay=1: unknown key 'weight_decay'; it is called 'optimizer.weight_decay' here");
  EXPECT_EQ(key_of_usual_name("name", {"model.name", "optimizer.name"}), "") << "of several none is meant";
}

TEST(UsualNames, EachLeadsToAKeyThatThereIs) {
  std::vector<std::string> keys;
  for (const RecipeKey& key : recipe_keys()) keys.push_back(key.name);
  for (const char* name :
       {"lr",   "wd",          "bs",           "max_epochs",     "opt",       "scheduler", "warmup",
        "arch", "dataset",     "val_split",    "early_stopping", "smoothing", "clip_grad", "grad_accum_steps",
        "amp",  "num_workers", "random_state", "pretrained",     "ema",       "hflip"}) {
    const std::string key = key_of_usual_name(name, keys);
    EXPECT_NE(std::find(keys.begin(), keys.end(), key), keys.end()) << name << " leads to '" << key << "'";
  }
}

}  // namespace
}  // namespace weft::spec
