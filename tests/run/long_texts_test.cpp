// Texts that need more steps than a reader of pictures has.
#include "weft/run/long_texts.h"

#include <gtest/gtest.h>

#include "weft/library/library.h"
#include "weft/ops/ops.h"

namespace weft::run {
namespace {

/// Pictures of two texts: 1 2 1 and 1 1 1.
class Texts : public data::Dataset {
 public:
  Texts()
      : Dataset(
            {.name = "texts", .sample_shape = {1, 4, 4}, .classes = 3, .task = "transcription", .target_shape = {4}}) {}
  int64_t size() const override { return 2; }
  void get(const data::SampleKey&, std::span<uint8_t> sample) const override {
    std::fill(sample.begin(), sample.end(), uint8_t{0});
  }
  void get_target(const data::SampleKey& key, std::span<uint8_t> target) const override {
    const std::vector<int32_t> texts[] = {{1, 2, 1, 0}, {1, 1, 1, 0}};
    std::copy(texts[key.index].begin(), texts[key.index].end(), data::view_as<int32_t>(target).begin());
  }
};

std::string note_for(int64_t steps) {
  const Library library = standard_library();
  Graph graph(library.ops, "reader");
  const ValueId likely = graph.add_input(InputKind::batch, "p", {DType::f32, {steps, 1, 3}, {}});
  const ValueId texts = graph.add_input(InputKind::batch, "labels", {DType::i32, {1, 4}, {}});
  ops::ctc_loss(graph, likely, ops::CtcTargets{texts}, {}, "losses");
  return note_of_long_texts(graph, Texts());
}

TEST(LongTexts, EqualNeighboursWantABlankBetweenThem) {
  EXPECT_EQ(note_for(5), "");
  EXPECT_EQ(note_for(4),
            "'texts': 1 text cannot be learned: with a blank between equal letters the longest takes 5 steps, and the "
            "network has 4; give wider pictures, by width=");
  EXPECT_EQ(note_for(2).substr(0, 16), "'texts': 2 texts");
}

}  // namespace
}  // namespace weft::run
