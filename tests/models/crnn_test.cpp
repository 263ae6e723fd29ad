// The reader of text lines: shapes, its own loss, what it refuses. Its training is compared with PyTorch's by
// tools/peer_check.py.
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/models/model.h"
#include "weft/ops/all.h"

namespace weft::models {
namespace {

class Crnn : public ::testing::Test {
 protected:
  Model make(const ModelInput& input, const ModelOptions& options = {}) {
    return build(registry_, "crnn", input, options, Mode::training);
  }
  std::string error(const ModelInput& input, ErrorKind kind) {
    try {
      make(input);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    return "no error";
  }
  OpRegistry registry_ = ops::make_registry();
};

TEST_F(Crnn, TakesAStepForEveryFourColumns) {
  const Model model = make({2, {1, 32, 100}, 37});
  EXPECT_EQ(model.graph.shape(model.logits), Shape({24, 2, 37}));  // as the published network
  EXPECT_EQ(model.graph.shape(model.labels), Shape({2 * 16}));
}

TEST_F(Crnn, HasALossOfItsOwn) {
  const Model model = make({2, {1, 32, 100}, 37}, {{"length", "9"}});
  ASSERT_TRUE(model.losses.valid() && model.correct.valid());
  EXPECT_EQ(model.graph.producer(model.losses)->op->name, "ctc_loss");
  EXPECT_EQ(model.graph.shape(model.losses), Shape({2}));
  EXPECT_EQ(model.graph.shape(model.correct), Shape{});
}

// PyTorch: benchmarks/peer/models, sum(p.numel() for p in Crnn((1, 32, 128), 37).parameters())
TEST_F(Crnn, HasAsManyParametersAsInPyTorch) {
  int64_t count = 0;
  for (const ParameterSpec& parameter : make({1, {1, 32, 128}, 37}).parameters)
    count += parameter.trainable ? parameter.shape.elements() : 0;
  EXPECT_EQ(count, 8724261);
}

TEST_F(Crnn, RefusesImagesTooNarrowForTheText) {
  EXPECT_EQ(error({2, {1, 32, 64}, 37}, ErrorKind::shape),
            "[crnn] images of width 64 give 15 steps, too few for texts of 16; widen them to 68, or set length");
}

TEST_F(Crnn, RefusesLowImagesAndASingleClass) {
  EXPECT_EQ(error({2, {1, 28, 28}, 37}, ErrorKind::shape),
            "[crnn] wants images (channels,height,width) of at least 32 x 32 pixels, got samples of shape (1,28,28); "
            "resize them, or choose another model");
  EXPECT_EQ(error({2, {1, 32, 128}, 1}, ErrorKind::usage),
            "[crnn] wants a blank, class 0, and at least one letter, got 1 classes");
}

}  // namespace
}  // namespace weft::models
