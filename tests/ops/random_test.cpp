#include "ops_fixture.h"

namespace weft::ops {
namespace {

class Dropout : public OpsTest {
 protected:
  const ValueId x_ = input("x", {4, 8});
  const ValueId seed_ = input("seed", {}, DType::i64), step_ = input("step", {}, DType::i64);
};

TEST_F(Dropout, KeepsTheShape) { EXPECT_EQ(graph_.shape(dropout(graph_, x_, seed_, step_, 0.1, 0)), Shape({4, 8})); }
TEST_F(Dropout, GradientDrawsTheSameMask) {
  const ValueId y = dropout(graph_, x_, seed_, step_, 0.25, 7);
  GradContext context{graph_, graph_.value(y).producer, {x_, seed_, step_}, {y}, {input("dy", {4, 8})}};
  const auto gradients = registry_.get("dropout").gradient(context);
  const Node& node = *graph_.producer(gradients[0]);
  EXPECT_EQ(node.op->name, "dropout");
  EXPECT_EQ(node.attributes, graph_.producer(y)->attributes);
  EXPECT_EQ(node.inputs[1], seed_);
  EXPECT_EQ(node.inputs[2], step_);
}
TEST_F(Dropout, ProbabilityOfOne) {
  EXPECT_EQ(shape_error([&] { dropout(graph_, x_, seed_, step_, 1, 0, "drop"); }),
            "[dropout] 'drop': probability must be at least 0 and below 1, got 1");
}
TEST_F(Dropout, VectorAsSeed) {
  const ValueId seeds = input("seeds", {4}, DType::i64);
  EXPECT_EQ(shape_error([&] { dropout(graph_, x_, seeds, step_, 0.1, 0, "drop"); }),
            "[dropout] 'drop': seed wants 0 dimensions, got 'seeds' (4)");
}
TEST_F(Dropout, RealStep) {
  const ValueId time = input("time", {});
  EXPECT_EQ(shape_error([&] { dropout(graph_, x_, seed_, time, 0.1, 0, "drop"); }),
            "[dropout] 'drop': step wants i64, got 'time' () of f32; add a cast");
}

}  // namespace
}  // namespace weft::ops
