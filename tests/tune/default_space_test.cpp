// What is searched where nobody says it.
#include "weft/tune/ranges/default_space.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::tune {
namespace {

/// "choice:32,64,128"; empty where the key is not searched.
std::string range_of(const std::string& key, const std::string& model, const models::ModelOptions& options = {}) {
  const Library library = standard_library();
  spec::RunSpec spec;
  spec.data = "fashion-mnist";
  spec.model.name = model;
  spec.model.options = options;
  for (const RangeText& range : default_ranges(spec, library))
    if (range.key == key) return print_range(range).substr(key.size() + 1);
  return "";
}

TEST(DefaultSpace, ConvolutionsAreHalfAndTwiceAsWide) {
  EXPECT_EQ(range_of("model.width", "resnet9"), "choice:8,16,32");
  EXPECT_EQ(range_of("model.width", "resnet18"), "choice:32,64,128");
  EXPECT_EQ(range_of("model.width", "resnet9", {{"width", "24"}}), "choice:8,24,48") << "in multiples of 8";
}

TEST(DefaultSpace, HeadsDivideTheWidthsOfATransformer) {
  EXPECT_EQ(range_of("model.width", "vit_tiny"), "choice:96,192,384");
  EXPECT_EQ(range_of("model.width", "vit_tiny", {{"heads", "5"}, {"width", "65"}}), "choice:30,65,130");
  EXPECT_EQ(range_of("model.layers", "vit_tiny"), "choice:6,12,18");
  EXPECT_EQ(range_of("model.dropout", "vit_tiny"), "float:0:0.5");
}

TEST(DefaultSpace, BatchesAreNoLargerThanTheTrainingPart) {
  const Library library = standard_library();
  spec::RunSpec spec;
  spec.data = "fashion-mnist";
  spec.model.name = "mlp";
  spec.validation = "0.9";  // 6,000 samples are left
  spec.batch = 4096;
  const std::vector<RangeText> ranges = default_ranges(spec, library);
  const auto batch = std::find_if(ranges.begin(), ranges.end(), [](const auto& one) { return one.key == "batch"; });
  ASSERT_NE(batch, ranges.end());
  EXPECT_EQ(print_range(*batch), "batch=choice:1024,2048,4096");
}

TEST(DefaultSpace, FactorsOfMobilenetAreThoseOfItsPaper) {
  EXPECT_EQ(range_of("model.width", "mobilenet_v2"), "choice:0.5,0.75,1,1.4");
}

TEST(DefaultSpace, AnMlpHasWidthsOfItsLayers) {
  EXPECT_EQ(range_of("model.hidden", "mlp"), "choice:64|128|256|128,64|256,128");
  EXPECT_EQ(range_of("model.width", "mlp"), "");
}

TEST(DefaultSpace, ASizeThatTheRecipeHasSaidStays) {
  EXPECT_EQ(range_of("model.width", "transformer_lm", {{"preset", "small"}}), "");
  EXPECT_EQ(range_of("model.width", "transformer_lm"), "choice:64,128,256");
  EXPECT_EQ(range_of("model.layers", "lstm_classifier"), "choice:1,2");
}

}  // namespace
}  // namespace weft::tune
