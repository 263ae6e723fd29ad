#include "weft/base/memory.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(AvailableMemory, IsSomethingBelowAPetabyte) {
  EXPECT_GT(available_memory_bytes(), 1 << 20);
  EXPECT_LT(available_memory_bytes(), int64_t{1} << 50);
}

}  // namespace
}  // namespace weft
