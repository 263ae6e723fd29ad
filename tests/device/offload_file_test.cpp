#include "weft/device/offload_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>

#include "tests/support/files_for_tests.h"
#include "weft/base/rng.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/plan/make_plan.h"
#include "weft/runtime/executor.h"

namespace weft {
namespace {

class OffloadFileTest : public FilesTest {
 protected:
  static std::vector<std::byte> drawn(int64_t bytes, uint64_t seed) {
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    RandomStream random(seed);
    for (std::byte& one : data) one = static_cast<std::byte>(random.below(256));
    return data;
  }
  static std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      return error.what();
    }
    return "";
  }
};

TEST_F(OffloadFileTest, GivesBackWhatWasWrittenWhateverItsSize) {
  OffloadFile file(path(""));
  const std::vector<int64_t> sizes = {1, 4095, 4096, 4097, 300'001, (8 << 20) + 5, (16 << 20)};
  int64_t total = 0;
  for (const int64_t size : sizes) total += (size + kFileBlockBytes - 1) / kFileBlockBytes * kFileBlockBytes;
  file.reserve(total);
  EXPECT_EQ(file.bytes(), total);
  for (uint64_t round = 0; round < 3; ++round) {  // a step writes over what the one before has written
    int64_t offset = 0;
    for (size_t index = 0; index < sizes.size(); ++index) {
      file.write(offset, drawn(sizes[index], 10 * round + index).data(), sizes[index]);
      offset += (sizes[index] + kFileBlockBytes - 1) / kFileBlockBytes * kFileBlockBytes;
    }
    for (size_t index = sizes.size(); index-- > 0;) {
      offset -= (sizes[index] + kFileBlockBytes - 1) / kFileBlockBytes * kFileBlockBytes;
      if (index > 0) file.read_ahead(0, sizes[0]);
      std::vector<std::byte> back(static_cast<size_t>(sizes[index]));
      file.read(offset, back.data(), sizes[index], 1 + static_cast<int>(round));
      EXPECT_TRUE(back == drawn(sizes[index], 10 * round + index)) << sizes[index] << " bytes, round " << round;
    }
  }
}

TEST_F(OffloadFileTest, ManySmallValuesOneAfterTheOther) {
  OffloadFile file(path(""));
  constexpr int64_t kCount = 1000;  // more than are on their way to the disk at once
  file.reserve(kCount * kFileBlockBytes);
  for (int64_t index = 0; index < kCount; ++index)
    file.write(index * kFileBlockBytes, reinterpret_cast<const std::byte*>(&index), sizeof index);
  for (int64_t index = 0; index < kCount; ++index) {
    int64_t back = -1;
    file.read(index * kFileBlockBytes, reinterpret_cast<std::byte*>(&back), sizeof back);
    EXPECT_EQ(back, index);
  }
}

TEST_F(OffloadFileTest, HasNoName) {
  OffloadFile file(path(""));
  file.reserve(1 << 20);
  EXPECT_TRUE(std::filesystem::is_empty(path("")));
}

TEST_F(OffloadFileTest, ADirectoryThatIsNoneIsNamed) {
  EXPECT_EQ(message_of([&] { OffloadFile file(path("absent")); }),
            "offload = '" + path("absent") +
                "': cannot make a file there: No such file or directory; give a directory on a disk with free space");
  write("letter", {1});
  EXPECT_NE(message_of([&] { OffloadFile file(path("letter")); }).find("Not a directory"), std::string::npos);
  EXPECT_NE(message_of([] { OffloadFile file("/proc"); }).find("offload = '/proc': cannot make a file there"),
            std::string::npos);
}

TEST_F(OffloadFileTest, MoreThanTheDiskHasIsRefusedBeforeAnythingIsWritten) {
  OffloadFile file(path(""));
  const std::string message = message_of([&] { file.reserve(int64_t{1} << 50); });
  EXPECT_NE(message.find("cannot take the 1.13 PB that the step keeps there: No space left on device"),
            std::string::npos)
      << message;
  EXPECT_EQ(file.bytes(), 0);
}

TEST_F(OffloadFileTest, AFileThatIsTooShortIsAnError) {
  OffloadFile file(path(""));
  std::byte back[16];
  EXPECT_NE(message_of([&] { file.read(8192, back, sizeof back); }).find("the file ends before 8208 bytes"),
            std::string::npos);
}

TEST_F(OffloadFileTest, ADirectoryInMemoryIsKnown) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "there is no /dev/shm here";
  EXPECT_TRUE(OffloadFile("/dev/shm").is_in_memory());
}

/// Pages of the file that the system keeps in memory.
int64_t cached_pages(const OffloadFile& file, const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code code;
    const std::string target = std::filesystem::read_symlink(entry.path(), code).string();
    if (code || !target.starts_with(directory) || target.find("deleted") == std::string::npos) continue;
    const int descriptor = open(entry.path().c_str(), O_RDONLY);
    void* mapped = mmap(nullptr, static_cast<size_t>(file.bytes()), PROT_READ, MAP_SHARED, descriptor, 0);
    std::vector<unsigned char> resident(static_cast<size_t>((file.bytes() + 4095) / 4096));
    const bool is_known =
        mapped != MAP_FAILED && mincore(mapped, static_cast<size_t>(file.bytes()), resident.data()) == 0;
    if (mapped != MAP_FAILED) munmap(mapped, static_cast<size_t>(file.bytes()));
    close(descriptor);
    if (!is_known) return -1;
    return std::accumulate(resident.begin(), resident.end(), int64_t{0},
                           [](int64_t sum, unsigned char page) { return sum + (page & 1); });
  }
  return -1;
}

TEST_F(OffloadFileTest, TheCacheOfTheSystemHoldsLittleOfIt) {
  OffloadFile file(path(""));
  if (file.is_in_memory()) GTEST_SKIP() << "the folder of the tests lies in memory";
  constexpr int64_t kBytes = 8 << 20, kCount = 20;
  const std::vector<std::byte> data = drawn(kBytes, 1);
  file.reserve(kBytes * kCount);
  for (int64_t index = 0; index < kCount; ++index) file.write(index * kBytes, data.data(), kBytes);
  const int64_t pages = cached_pages(file, path(""));
  if (pages < 0) GTEST_SKIP() << "the system does not say what it keeps";
  EXPECT_LE(pages * 4096, kOffloadWindowBytes + 2 * kBytes);
}

class OffloadedStep : public OffloadFileTest {};

TEST_F(OffloadedStep, WritesAndReadsBackWhatThePlanSays) {
  const OpRegistry registry = ops::make_registry();
  const Graph graph = parse_graph(R"(graph "g" {
    batch %x "x" : f32[5000]
    %a = exp(%x) : f32[5000]
    %a.stored = store(%a) : f32[5000]
    %b = square(%a) : f32[5000]
    %b.stored = store(%b) : f32[5000]
    %sum = reduce_sum(%b) {axes=[0]} : f32[]
    %b.loaded = load(%b.stored) : f32[5000]
    %a.loaded = load(%a.stored) : f32[5000]
    %c = subtract(%b.loaded, %a.loaded) : f32[5000]
    output "sum" %sum
    output "c" %c
  })",
                                  registry);
  const CpuBackend backend(1);
  const Plan plan = make_plan(graph, backend, 1);
  ASSERT_GT(plan.file_bytes, 0);
  EXPECT_THROW(Executor(graph, plan, backend), Error) << "there is no file";
  Arena arena;
  arena.open_file(path(""));
  arena.file()->reserve(plan.file_bytes);
  Executor executor(graph, plan, backend, &arena);
  Tensor x(graph.type(graph.find_value("x")));
  executor.bind_batch("x", x.data());
  for (int step = 0; step < 3; ++step) {
    for (int64_t i = 0; i < 5000; ++i) x.data_as<float>()[i] = 1e-4f * static_cast<float>(i + step);
    executor.run();
    const Tensor c = executor.output("c");
    for (int64_t i = 0; i < 5000; i += 499) {
      const float e = std::exp(x.data_as<float>()[i]);
      EXPECT_NEAR(c.data_as<float>()[i], e * e - e, 1e-5) << "step " << step << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace weft
