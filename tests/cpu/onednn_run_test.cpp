// How the oneDNN kernels run: on how many threads, and without allocating.
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <thread>

#include "tests/cpu/onednn_support.h"
#include "weft/cpu/onednn/handles.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> own_allocations{0};

/// True inside a call of oneDNN or OpenMP, whose own allocations are not weft's. They never call back into weft, so one
/// frame of theirs anywhere on the stack tells (templates of the C++ library may lie in this program).
bool is_library_call() {
  void* frames[48];
  const int count = backtrace(frames, 48);
  return std::any_of(frames, frames + count, [](const void* address) {
    Dl_info info;
    return dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
           (std::strstr(info.dli_fname, "libdnnl") != nullptr || std::strstr(info.dli_fname, "libgomp") != nullptr);
  });
}

void* counted_or_null(std::size_t bytes) {
  if (counting && !is_library_call()) ++own_allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* counted_allocation(std::size_t bytes) {
  void* memory = counted_or_null(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// The first backtrace loads a library.
void start_counting() {
  void* frame[1];
  backtrace(frame, 1);
  own_allocations = 0;
  counting = true;
}

/// Not inlined: the compiler would take the malloc behind operator new and this free for a mismatch.
[[gnu::noinline]] void release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t bytes) { return counted_allocation(bytes); }
void* operator new[](std::size_t bytes) { return counted_allocation(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted_or_null(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace weft {
namespace {

using namespace testing_support;

/// A convolution with a workspace: plain depthwise weights are reordered inside.
OwnedSignature depthwise_on_blocked_image() {
  const TensorType image{DType::f32, {2, 32, 8, 8}, parse_layout("aBcd8b", 4)};
  return make_signature("conv2d", {image, {DType::f32, {32, 1, 3, 3}, {}}}, image,
                        {{"stride", std::vector<int64_t>{1, 1}},
                         {"padding", std::vector<int64_t>{1, 1}},
                         {"dilation", std::vector<int64_t>{1, 1}},
                         {"groups", int64_t{32}}});
}

TEST(OneDnnRun, DoesNotAllocateOnWeftsSide) {
  const auto signature = depthwise_on_blocked_image();
  const auto kernel = make_onednn_kernel(signature.node);
  ASSERT_NE(kernel, nullptr);
  ASSERT_GT(kernel->workspace_bytes(), 0);
  const Tensor image(signature.node.inputs[0]), weights(signature.node.inputs[1]);
  Tensor output(signature.node.outputs[0]);
  const auto workspace = allocate_aligned(kernel->workspace_bytes());
  const void* in[] = {image.data(), weights.data()};
  void* out[] = {output.data()};
  start_counting();
  for (int i = 0; i < 3; ++i) kernel->run({in, out, workspace.get()});
  counting = false;
  EXPECT_EQ(own_allocations, 0);
}

TEST(OneDnnRun, CountsWhatWeftAllocates) {
  start_counting();
  const auto tensor = std::make_unique<Tensor>();
  counting = false;
  EXPECT_GT(own_allocations, 0);
}

TEST(OneDnnRun, FollowsOperandsThatMove) {
  const auto signature = make_signature("matmul", {{DType::f32, {4, 4}, {}}, {DType::f32, {4, 4}, {}}},
                                        {DType::f32, {4, 4}, {}}, {{"transpose_a", false}, {"transpose_b", false}});
  const auto kernel = make_onednn_kernel(signature.node);
  const Tensor identity = Tensor::of({4, 4}, std::vector<float>{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  for (uint64_t key = 1; key < 4; ++key) {
    const Tensor a = random_tensor({4, 4}, key);
    EXPECT_LT(relative_error(run_onednn_kernel(*kernel, signature.node, {a, identity}), a), 1e-6);
  }
}

TEST(OneDnnRun, LeavesTheCallersThreadCountAlone) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  const auto signature = depthwise_on_blocked_image();
  const auto kernel = make_onednn_kernel(signature.node, 2);
  run_onednn_kernel(*kernel, signature.node, {random_tensor({2, 32, 8, 8}, 1), random_tensor({32, 1, 3, 3}, 2)});
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(before);
}

int count_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

/// Threads that a run starts. A fresh calling thread has no OpenMP workers yet, so all that it uses are new; those of
/// the caller before it have until then to end: `idle` threads are left.
int threads_started(int threads, int idle) {
  const auto signature = make_signature("matmul", {{DType::f32, {512, 256}, {}}, {DType::f32, {256, 512}, {}}},
                                        {DType::f32, {512, 512}, {}}, {{"transpose_a", false}, {"transpose_b", false}});
  const Tensor a = random_tensor({512, 256}, 1), b = random_tensor({256, 512}, 2);
  for (int wait = 0; wait < 1000 && count_threads() > idle; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  int started = 0;
  std::thread([&] {
    const int before = count_threads();
    const auto kernel = make_onednn_kernel(signature.node, threads);
    run_onednn_kernel(*kernel, signature.node, {a, b});
    started = count_threads() - before;
  }).join();
  return started;
}

TEST(OneDnnRun, UsesTheThreadsItIsGiven) {
#if !defined(_OPENMP)
  GTEST_SKIP() << "built without OpenMP: oneDNN takes the threads of its environment";
#endif
  const int idle = count_threads();
  EXPECT_EQ(threads_started(1, idle), 0);
  EXPECT_EQ(threads_started(2, idle), 1);
  EXPECT_EQ(threads_started(3, idle), 2);
}

TEST(OneDnnRun, SameCallTwiceGivesTheSameBits) {
  const auto signature = make_signature("matmul", {{DType::f32, {64, 512}, {}}, {DType::f32, {512, 96}, {}}},
                                        {DType::f32, {64, 96}, {}}, {{"transpose_a", false}, {"transpose_b", false}});
  const auto kernel = make_onednn_kernel(signature.node);
  const Tensor a = random_tensor({64, 512}, 1), b = random_tensor({512, 96}, 2);
  const Tensor first = run_onednn_kernel(*kernel, signature.node, {a, b});
  const Tensor second = run_onednn_kernel(*kernel, signature.node, {a, b});
  EXPECT_EQ(std::memcmp(first.data(), second.data(), static_cast<size_t>(first.bytes())), 0);
}

}  // namespace
}  // namespace weft
