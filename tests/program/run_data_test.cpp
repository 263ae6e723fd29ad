// What the two splits of a run's data must have in common.
#include "weft/program/run_data.h"

#include "tests/support/files_for_tests.h"

namespace weft::program {
namespace {

/// Zeros, with targets of any shape.
class Zeros : public data::Dataset {
 public:
  explicit Zeros(Shape target)
      : Dataset({.name = "zeros",
                 .sample_shape = {1},
                 .classes = 3,
                 .task = "language_model",
                 .sample_dtype = DType::i32,
                 .target_shape = std::move(target)}) {}
  int64_t size() const override { return 4; }
  void get(const data::SampleKey&, std::span<uint8_t> sample) const override {
    std::fill(sample.begin(), sample.end(), uint8_t{0});
  }
  void get_target(const data::SampleKey& key, std::span<uint8_t> target) const override { get(key, target); }
};

TEST(RunData, TargetsOfBothSplitsMustBeAlike) {
  Library library;
  library.data.push_back({.name = "zeros",
                          .form = "zeros",
                          .summary = "",
                          .open = [](const data::DataSpec&, data::Split split, const std::string&) {
                            return std::make_unique<Zeros>(split == data::Split::test ? Shape{1} : Shape{2});
                          }});
  spec::RunSpec spec;
  spec.data = "zeros";
  spec.batch = 2;
  expect_error([&] { open_run_data(library, spec); }, ErrorKind::data,
               {"'zeros': a target is (1) of i32, of the training data (2) of i32"});
  EXPECT_NO_THROW(require_equal_targets(Zeros({2}).info(), Zeros({2}).info()));
}

}  // namespace
}  // namespace weft::program
