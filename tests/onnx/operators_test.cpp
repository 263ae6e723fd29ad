// The table of operators as a whole: weft/onnx/operators/operators.h.
#include "weft/onnx/operators/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/files.h"

namespace weft::onnx {
namespace {

TEST(OnnxOperators, ThePageOfOnnxHasTheTable) {
  EXPECT_THAT(read_text(WEFT_SOURCE_DIR "/docs/onnx.md"), testing::HasSubstr(operator_reference(standard_operators())))
      << "put what `build/weft import --operators` prints into docs/onnx.md";
}

TEST(OnnxOperators, EachIsConvertedOrRun) {
  const OperatorTable table = standard_operators();
  for (const auto& [name, row] : table.all()) {
    EXPECT_TRUE(row.convert || row.run) << name;
    EXPECT_FALSE(row.family.empty()) << name;
  }
}

TEST(OnnxOperators, OfOtherDomainsAreUnknown) {
  const OperatorTable table = standard_operators();
  EXPECT_NE(table.find("", "Conv"), nullptr);
  EXPECT_EQ(table.find("com.example", "Conv"), nullptr);
}

}  // namespace
}  // namespace weft::onnx
