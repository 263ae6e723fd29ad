// Options of models that nothing can be built with.
#include "weft/tune/model_check.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/data/open_dataset.h"
#include "weft/tune/ranges/recipe_space.h"
#include "weft/tune/trials/trial_plan.h"

namespace weft::tune {
namespace {

class ModelCheck : public ::testing::Test {
 protected:
  /// Empty where all can be built.
  std::string message(const std::string& model, const std::vector<std::string>& texts) const {
    std::vector<RangeText> ranges;
    for (const std::string& text : texts) ranges.push_back(parse_range(text));
    StudySettings settings{.recipe = "data = \"fashion-mnist\"\n[model]\nname = \"" + model + "\"\n"};
    const spec::RunSpec spec = base_spec(settings, library_);
    settings.space = recipe_space(ranges, spec, library_);
    const data::DatasetInfo info = data::open_dataset(library_.data, spec.data, data::Split::train)->info();
    try {
      require_models(settings, ranges, info, library_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  Library library_ = standard_library();
};

TEST_F(ModelCheck, NamesAChoiceThatTheModelRefuses) {
  const std::string text = message("mlp", {"model.hidden=choice:64|abc"});
  EXPECT_TRUE(text.starts_with("--set-range 'model.hidden=choice:64|abc'")) << text;
  EXPECT_NE(text.find("'abc'"), std::string::npos) << text;
  EXPECT_EQ(message("mlp", {"model.hidden=choice:64|128,64"}), "");
}

TEST_F(ModelCheck, NamesTheEndOfARangeThatTheModelRefuses) {
  EXPECT_NE(message("resnet9", {"model.width=int:0:16"}).find("model.width=int:0:16"), std::string::npos);
  EXPECT_EQ(message("resnet9", {"model.width=int:4:16"}), "");
}

TEST_F(ModelCheck, NamesARangeOfAllNumbersWhereTheModelWantsWholeOnes) {
  const std::string text = message("mlp", {"model.hidden=float:10:20"});
  EXPECT_NE(text.find("for whole numbers write int:LOW:HIGH"), std::string::npos) << text;
  EXPECT_EQ(message("vit_tiny", {"model.dropout=float:0:1"}).find("whole numbers"), std::string::npos);
}

TEST_F(ModelCheck, AValueMayNeedAnotherOne) {
  // 5 heads divide 60, and not the usual width of 192.
  EXPECT_EQ(message("vit_tiny", {"model.heads=choice:3,5", "model.width=choice:60,192"}), "");
  EXPECT_NE(message("vit_tiny", {"model.heads=choice:3,5"}), "");
}

TEST_F(ModelCheck, AnOptionIsTriedWithAModelThatHasIt) {
  EXPECT_EQ(message("mlp", {"model.name=choice:mlp,resnet9", "model.width=int:4:16:4"}), "");
}

}  // namespace
}  // namespace weft::tune
