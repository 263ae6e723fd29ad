#include "weft/program/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft::program {
namespace {

constexpr size_t kBytes = size_t{64} << 20;
constexpr int64_t kSlack = int64_t{4} << 20;

TEST(MemoryGrowth, CountsWhatIsTouchedAndKeepsThePeak) {
  const MemoryGrowth growth;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  EXPECT_NEAR(growth.now(), static_cast<int64_t>(kBytes), kSlack);
  munmap(memory, kBytes);
  EXPECT_NEAR(growth.now(), 0, kSlack);
  EXPECT_NEAR(growth.peak(), static_cast<int64_t>(kBytes), kSlack);
}

TEST(MemoryGrowth, CountsHalfOfWhatTwoProcessesShare) {
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::array<int, 2> ready{}, end{};
  ASSERT_EQ(pipe(ready.data()), 0);
  ASSERT_EQ(pipe(end.data()), 0);
  const pid_t peer = fork();
  if (peer == 0) {  // touches its view, and keeps it until it is told to end
    std::memset(memory, 1, kBytes);
    char byte = 0;
    if (write(ready[1], &byte, 1) != 1 || read(end[0], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const MemoryGrowth growth;
  std::memset(memory, 2, kBytes);
  EXPECT_NEAR(growth.with_peers(), static_cast<int64_t>(kBytes), kSlack);
  EXPECT_NEAR(growth.now(), static_cast<int64_t>(kBytes) / 2, kSlack);
  EXPECT_NEAR(growth.peak(), static_cast<int64_t>(kBytes) / 2, kSlack);
  ASSERT_EQ(write(end[1], &byte, 1), 1);
  int status = 0;
  waitpid(peer, &status, 0);
  EXPECT_EQ(status, 0);
  for (const int file : {ready[0], ready[1], end[0], end[1]}) close(file);
  munmap(memory, kBytes);
}

TEST(MemoryGrowth, CountsCodeApart) {
  const MemoryGrowth growth;
  void* const data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const code = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  ASSERT_NE(code, MAP_FAILED);
  std::memset(data, 1, kBytes);
  std::memset(code, 1, kBytes);
  EXPECT_NEAR(growth.code(), 0, kSlack);
  ASSERT_EQ(mprotect(code, kBytes, PROT_READ | PROT_EXEC), 0);
  EXPECT_NEAR(growth.code(), static_cast<int64_t>(kBytes), kSlack);
  EXPECT_NEAR(growth.now(), 2 * static_cast<int64_t>(kBytes), kSlack);
  munmap(data, kBytes);
  munmap(code, kBytes);
}

TEST(GraphAndKernelBytes, GrowWithTheNodesOfAllGraphs) {
  const OpRegistry registry = ops::make_registry();
  Graph one(registry);
  const ValueId input = one.add_input(InputKind::batch, "x", {DType::f32, {2}, {}});
  Graph two = one;
  ops::relu(two, input);
  EXPECT_GT(graph_and_kernel_bytes({&two}), graph_and_kernel_bytes({&one}));
  EXPECT_EQ(graph_and_kernel_bytes({&two, &two}) - graph_and_kernel_bytes({&two}),
            graph_and_kernel_bytes({&two}) - graph_and_kernel_bytes({}));
}

}  // namespace
}  // namespace weft::program
