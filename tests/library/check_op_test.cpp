#include "weft/library/check_op.h"

#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"
#include "tests/support/own_library.h"

namespace weft {
namespace {

/// The sine with examples, and whatever `change` makes of it.
Library library_with(const std::function<void(OpDef&)>& change, const PrepareKernel& kernel = prepare_sine) {
  Library library = standard_library();
  OpDef op = sine_op();
  op.examples = {{.label = "matrix", .inputs = {ops::f32({5, 7})}, .ranges = {{-4, 4}}}};
  change(op);
  library.add_op(std::move(op), kernel);
  return library;
}

TEST(CheckOp, AcceptsWhatIsRight) {
  check_op(library_with([](OpDef&) {}), "sine");
}

TEST(CheckOp, AcceptsWeftsOwn) { check_op(standard_library(), "softmax"); }

TEST(CheckOp, FindsAWrongGradient) {
  const Library library = library_with(
      [](OpDef& op) { op.gradient = [](GradContext& context) { return std::vector{context.output_gradients[0]}; }; });
  expect_error([&] { check_op(library, "sine"); }, ErrorKind::numeric,
               {"[sine] example 'matrix'", "gradient of input 0", "by finite differences"});
}

TEST(CheckOp, FindsAGradientThatIsLeftOut) {
  const Library library =
      library_with([](OpDef& op) { op.gradient = [](GradContext&) { return std::vector{ValueId{}}; }; });
  expect_error([&] { check_op(library, "sine"); }, ErrorKind::numeric, {"which the rule leaves out"});
}

TEST(CheckOp, NamesARuleThatGivesTooManyGradients) {
  const Library library = library_with([](OpDef& op) {
    op.gradient = [](GradContext& context) {
      return std::vector{context.output_gradients[0], context.output_gradients[0]};
    };
  });
  expect_error([&] { check_op(library, "sine"); }, ErrorKind::numeric, {"2 gradients for 1 inputs"});
}

TEST(CheckOp, NamesAGradientOfAnotherShape) {
  const Library library = library_with([](OpDef& op) {
    op.gradient = [](GradContext& context) {
      return std::vector{ops::reduce_sum(context.graph, context.output_gradients[0])};
    };
  });
  expect_error([&] { check_op(library, "sine"); }, ErrorKind::shape, {"[sine] 'example'", "(5,7)", "sum_to_shape"});
}

TEST(CheckOp, FindsAWrongFastKernel) {
  Library library = library_with([](OpDef&) {});
  const PrepareKernel wrong = [](const NodeSignature&, const KernelOptions&) {
    return [](const KernelArguments& call) { call.output(0)[0] = 2; };
  };
  library.kernels.add_first("sine", {"mine", function_kernel("mine:wrong", wrong)});
  expect_error([&] { check_op(library, "sine"); }, ErrorKind::numeric, {"output 0 of kernel 'mine:wrong'", "got 2"});
}

TEST(CheckOp, WantsExamples) {
  const Library library = library_with([](OpDef& op) { op.examples.clear(); });
  expect_error([&] { check_op(library, "sine"); }, ErrorKind::usage, {"[sine] has no examples"});
}

TEST(CheckOp, NamesAShapeRuleThatGivesNothing) {
  const Library library =
      library_with([](OpDef& op) { op.infer = [](const InferContext&) { return std::vector<TensorType>{}; }; });
  expect_error([&] { check_op(library, "sine"); }, ErrorKind::usage, {"shape rule gives 0 outputs, the op has 1"});
}

}  // namespace
}  // namespace weft
