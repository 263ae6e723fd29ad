// Ranges as users write them, checked by the declarations of the keys.
#include "weft/tune/ranges/recipe_space.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace weft::tune {
namespace {

using test::error_of;

class RecipeSpace : public ::testing::Test {
 protected:
  RecipeSpace() : library_(standard_library()) {
    base_.model.name = "mlp";
    base_.optimizer.name = "sgd";
  }
  Space space(const std::vector<std::string>& texts) const {
    std::vector<RangeText> ranges;
    for (const std::string& text : texts) ranges.push_back(parse_range(text));
    return recipe_space(ranges, base_, library_);
  }
  Space file(const std::string& text) const { return recipe_space(parse_space_file(text, "s.toml"), base_, library_); }
  std::string message(const std::vector<std::string>& texts) const {
    return error_of([&] { space(texts); }, ErrorKind::usage);
  }
  std::string message_of_file(const std::string& text) const {
    return error_of([&] { file(text); }, ErrorKind::usage);
  }

  Library library_;
  spec::RunSpec base_;
};

TEST_F(RecipeSpace, KindsFollowTheKeys) {
  const Space found =
      space({"optimizer.learning_rate=log:1e-4:1", "batch=int:16:256:16", "ema.decay=float:0:0.99",
             "optimizer.name=choice:sgd,adamw", "optimizer.weight_decay=choice:auto,0,0.01", "accumulate=log:1:16"});
  EXPECT_EQ(found[0], log_real("optimizer.learning_rate", 1e-4, 1));
  EXPECT_EQ(found[1], integer("batch", 16, 256, 16));
  EXPECT_EQ(found[2], real("ema.decay", 0, 0.99));
  EXPECT_EQ(found[3], choice("optimizer.name", {std::string("sgd"), std::string("adamw")}));
  EXPECT_EQ(found[4], choice("optimizer.weight_decay", {std::string("auto"), 0.0, 0.01}));
  EXPECT_EQ(found[5], log_integer("accumulate", 1, 16)) << "of a key of whole numbers";
}

TEST_F(RecipeSpace, ABatchThatIsMeasuredIsNoChoice) {
  EXPECT_NE(message({"batch=choice:auto,32"}).find("a batch of 'auto' is measured when its trial has begun"),
            std::string::npos);
  EXPECT_EQ(space({"optimizer.learning_rate=choice:auto,0.1"}).size(), 1u) << "it takes no other memory";
}

TEST_F(RecipeSpace, ChoicesMayHaveCommas) {
  const Space found = space({"model.hidden=choice:64|128,64"});
  EXPECT_EQ(found[0], choice("model.hidden", {std::string("64"), std::string("128,64")}));
}

TEST_F(RecipeSpace, AFileSaysTheSame) {
  const Space found = file(
      "batch = \"int:16:256\"\n[optimizer]\nlearning_rate = { range = [1e-4, 1.0], log = true }\n"
      "name = { choices = [\"sgd\", \"adamw\"] }\n[model]\nhidden = { choices = [\"64\", \"128,64\"] }\n");
  const Space same = space({"batch=int:16:256", "optimizer.learning_rate=log:1e-4:1", "optimizer.name=choice:sgd,adamw",
                            "model.hidden=choice:64|128,64"});
  EXPECT_EQ(print_space(found), print_space(same));
}

TEST_F(RecipeSpace, KeysThatSomeChoicesReadHaveThatCondition) {
  const Space found = space({"optimizer.momentum=float:0.5:0.99", "optimizer.name=choice:sgd,adamw,rmsprop"});
  const auto momentum = *found.find("optimizer.momentum");
  ASSERT_TRUE(found[momentum].condition.has_value());
  EXPECT_EQ(found[momentum].condition->name, "optimizer.name");
  EXPECT_EQ(found[momentum].condition->values, (std::vector<KeyValue>{std::string("sgd"), std::string("rmsprop")}));
}

TEST_F(RecipeSpace, OptionsOfOneModelHaveThatCondition) {
  const Space found = space({"model.name=choice:mlp,lenet5", "model.hidden=choice:64|128"});
  EXPECT_EQ(found[*found.find("model.hidden")].condition, (Condition{"model.name", {std::string("mlp")}}));
}

TEST_F(RecipeSpace, ConditionsCanBeWritten) {
  const Space found =
      space({"schedule.name=choice:cosine,constant", "schedule.warmup_epochs=float:0:2 if schedule.name=cosine"});
  EXPECT_EQ(found[1].condition, (Condition{"schedule.name", {std::string("cosine")}}));
  const Space of_file = file(
      "[schedule]\nname = { choices = [\"cosine\", \"constant\"] }\n"
      "warmup_epochs = { range = [0.0, 2.0], if = { \"schedule.name\" = [\"cosine\"] } }\n");
  EXPECT_EQ(print_space(of_file), print_space(found));
}

TEST_F(RecipeSpace, NamesTheRangeWhoseConditionIsWrong) {
  EXPECT_EQ(
      message({"optimizer.name=choice:sgd,adamw", "optimizer.momentum=float:0:0.9 if optimizer.name=lion"})
          .rfind("--set-range 'optimizer.momentum=float:0:0.9 if optimizer.name=lion': optimizer.name = 'lion'", 0),
      0u);
}

TEST_F(RecipeSpace, NamesAConditionUnderWhichNothingReadsTheKey) {
  EXPECT_NE(message({"optimizer.name=choice:sgd,adamw", "optimizer.momentum=float:0:0.9 if optimizer.name=adamw"})
                .find("optimizer.momentum has no effect with optimizer.name = 'adamw'"),
            std::string::npos);
}

TEST_F(RecipeSpace, NamesTheNearestKey) {
  EXPECT_EQ(message({"optimizer.learnin_rate=log:1e-4:1"}),
            "--set-range 'optimizer.learnin_rate=log:1e-4:1': unknown key 'optimizer.learnin_rate'; did you mean "
            "'optimizer.learning_rate'?");
  EXPECT_NE(message({"lr=log:1e-4:1"}).find("it is called 'optimizer.learning_rate' here"), std::string::npos);
}

TEST_F(RecipeSpace, NamesTheNearestOption) {
  EXPECT_NE(message({"model.hiden=choice:64|128"}).find("mlp has no option 'hiden'; did you mean 'hidden'?"),
            std::string::npos);
}

TEST_F(RecipeSpace, NamesWhatAKeyRefuses) {
  EXPECT_NE(message({"optimizer.name=choice:sgd,adamx"}).find("optimizer.name = 'adamx' is not known"),
            std::string::npos);
  EXPECT_NE(message({"ema.decay=float:0:1.5"}).find("ema.decay = 1.5 is out of range"), std::string::npos);
  EXPECT_NE(message({"batch=int:0:16"}).find("batch = 0 is out of range: 1 to 65536"), std::string::npos);
  EXPECT_NE(message({"batch=float:1.5:16"}).find("batch wants whole numbers, got '1.5'"), std::string::npos);
  EXPECT_NE(message({"model.name=choice:mlp,mpl"}).find("mpl"), std::string::npos);
}

TEST_F(RecipeSpace, NamesRangesThatAreNone) {
  EXPECT_NE(message({"optimizer.learning_rate=log:0:1"}).find("the logarithm of 0 does not exist"), std::string::npos);
  EXPECT_NE(message({"optimizer.learning_rate=log:1:0.1"}).find("upside down"), std::string::npos);
  EXPECT_NE(message({"optimizer.learning_rate=lgo:1:2"}).find("'lgo:1:2' is no range; write float:LOW:HIGH"),
            std::string::npos);
  EXPECT_NE(message({"optimizer.learning_rate=log:1"}).find("'log:1' wants log:LOW:HIGH"), std::string::npos);
  EXPECT_NE(message({"optimizer.learning_rate"}).find("wants KEY=RANGE"), std::string::npos);
  EXPECT_NE(message({"optimizer.name=float:0:1"}).find("optimizer.name is a text; list what to choose from"),
            std::string::npos);
}

TEST_F(RecipeSpace, NamesKeysThatTheRecipeDoesNotRead) {
  base_.optimizer.name = "adamw";
  EXPECT_NE(message({"optimizer.momentum=float:0.5:0.9"}).find("has no effect with optimizer.name = 'adamw'"),
            std::string::npos);
  EXPECT_NE(message({"optimizer.momentum=float:0.5:0.9", "optimizer.name=choice:adam,adamw"})
                .find("has no effect with any of optimizer.name = adam, adamw"),
            std::string::npos);
}

TEST_F(RecipeSpace, NamesKeysThatDecideWhatIsMeasured) {
  EXPECT_NE(message({"validation=choice:0.1,0.2"}).find("it decides what trials are measured by"), std::string::npos);
  EXPECT_NE(message({"threads=int:1:2"}).find("it changes the sums of every trial"), std::string::npos);
}

TEST_F(RecipeSpace, NamesTheLineOfAFile) {
  EXPECT_EQ(message_of_file("[optimizer]\nlearning_rate = 0.1\n").substr(0, 9), "s.toml:2:");
  EXPECT_NE(message_of_file("[optimizer]\nlearning_rate = { range = [1, 2], lgo = true }\n").find("has no 'lgo'"),
            std::string::npos);
  EXPECT_NE(message_of_file("[optimizer]\nlearning_rate = { range = [1, 2], log = \"yes\" }\n")
                .find("log of optimizer.learning_rate is true or false"),
            std::string::npos);
  EXPECT_NE(message_of_file("batch = { choices = [16, 32], log = true }\n").find("choices have neither log nor step"),
            std::string::npos);
  EXPECT_NE(message_of_file("batch = { range = [1] }\n").find("batch wants range = [LOW, HIGH]"), std::string::npos);
  EXPECT_NE(message_of_file("batch = \n").find("is no TOML"), std::string::npos);
}

TEST_F(RecipeSpace, WantsSomethingToSearch) {
  EXPECT_NE(message({}).find("there is nothing to search"), std::string::npos);
}

TEST_F(RecipeSpace, ValuesBecomeKeys) {
  const Space found =
      space({"optimizer.learning_rate=log:1e-4:1", "batch=int:16:256:16", "model.hidden=choice:64|128,64",
             "optimizer.nesterov=bool", "optimizer.weight_decay=choice:auto,0.5"});
  spec::RunSpec spec = base_;
  spec.optimizer.weight_decay = 0.25;
  apply_values(spec, found.values(found.from_unit({0.5, 0.0, 0.9, 0.1, 0.1})), library_);
  EXPECT_DOUBLE_EQ(spec.optimizer.learning_rate, 0.01);
  EXPECT_EQ(spec.batch, 16);
  EXPECT_EQ(spec.model.options.at("hidden"), "128,64");
  EXPECT_TRUE(spec.optimizer.nesterov);
  EXPECT_LT(spec.optimizer.weight_decay, 0) << "auto";
}

}  // namespace
}  // namespace weft::tune
