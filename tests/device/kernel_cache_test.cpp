#include "weft/device/kernel_cache.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <thread>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"
#include "weft/cpu/cpu_device.h"

namespace weft {
namespace {

using testing::HasSubstr;

const KernelTimes kTimes = {{"relu;f32[4];f32[4]", {{"native:relu", 1.25e-6}, {"onednn:jit \"x\"", 2e-6}}},
                            {"matmul;f32[2,2] f32[2,2];f32[2,2]", {{"onednn:brg", 3e-7}, {"onednn:gemm", 1}}}};

class KernelCacheTest : public FilesTest {
 protected:
  KernelCache::Note note() {
    return [this](const std::string& line) { notes_.push_back(line); };
  }
  KernelCache cache_{folder_ / "new", "2 threads"};
  std::vector<std::string> notes_;
};

TEST_F(KernelCacheTest, WhatIsPrintedIsRead) {
  EXPECT_EQ(parse_kernel_times(print_kernel_times(kTimes, "here"), "here"), kTimes);
  EXPECT_EQ(parse_kernel_times(print_kernel_times({}, "here"), "here"), KernelTimes());
}

TEST_F(KernelCacheTest, TimesOfAnotherMachineAreRefused) {
  expect_error([] { parse_kernel_times(print_kernel_times(kTimes, "there"), "here"); }, ErrorKind::data,
               {"it is of another machine, there"});
}

TEST_F(KernelCacheTest, EveryTruncationAndEveryFlippedBitIsNoticed) {
  const std::string text = print_kernel_times(kTimes, "here");
  for (size_t size = 0; size < text.size(); ++size)
    expect_error([&] { parse_kernel_times(text.substr(0, size), "here"); }, ErrorKind::data, {""});
  for (size_t at = 0; at < text.size(); ++at)
    for (const int bit : {0, 4}) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      try {
        EXPECT_EQ(parse_kernel_times(flipped, "here"), kTimes) << "byte " << at;  // such as a letter of a key unread
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data);
      }
    }
}

TEST_F(KernelCacheTest, EachNumberOfThreadsHasAFileOfItsOwn) {
  EXPECT_NE(KernelCache(folder_, "1 thread").file(), KernelCache(folder_, "2 threads").file());
  const DeviceKind cpu = cpu_device();
  EXPECT_NE(cpu.describe_machine(1), cpu.describe_machine(2));
}

TEST_F(KernelCacheTest, ReadsNothingWhereThereIsNoFile) {
  EXPECT_TRUE(cache_.read(note()).empty());
  EXPECT_TRUE(notes_.empty());
}

TEST_F(KernelCacheTest, AddsToWhatIsThere) {
  auto first = kTimes.begin();
  cache_.add({*first});
  cache_.add({*std::next(first)});
  EXPECT_EQ(cache_.read(note()), kTimes);
  cache_.add({{first->first, {{"other", 1}}}});
  EXPECT_EQ(cache_.read(note()).at(first->first).front().kernel, "other");
  EXPECT_TRUE(notes_.empty());
}

TEST_F(KernelCacheTest, AFileThatCannotBeUsedIsNamedAndReplaced) {
  cache_.add(kTimes);
  const std::string text = read_text(cache_.file());
  write_atomically(cache_.file(), text.substr(0, text.size() / 2));
  EXPECT_TRUE(cache_.read(note()).empty());
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr(cache_.file().string() + "' are not used: it is damaged"));
  cache_.add(kTimes);
  EXPECT_EQ(cache_.read(note()), kTimes);
  EXPECT_EQ(notes_.size(), 1u);
}

TEST_F(KernelCacheTest, SeveralAddAtATime) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 8; ++writer)
    writers.emplace_back([&, writer] {
      for (int node = 0; node < 4; ++node)
        KernelCache(folder_ / "new", "2 threads").add({{std::to_string(writer * 4 + node), {{"kernel", 1}}}});
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(cache_.read(note()).size(), 32u);
}

TEST_F(KernelCacheTest, LiesWhereTheEnvironmentSays) {
  const auto keep = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string home = keep("HOME"), xdg = keep("XDG_CACHE_HOME"), own = keep("WEFT_CACHE_DIR");
  setenv("HOME", "/h", 1);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("WEFT_CACHE_DIR");
  EXPECT_EQ(KernelCache::standard_directory(), "/h/.cache/weft");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(KernelCache::standard_directory(), "/x/weft");
  setenv("WEFT_CACHE_DIR", "/w", 1);
  EXPECT_EQ(KernelCache::standard_directory(), "/w");
  for (const char* name : {"HOME", "XDG_CACHE_HOME", "WEFT_CACHE_DIR"}) unsetenv(name);
  expect_error([] { KernelCache::standard_directory(); }, ErrorKind::usage, {"set WEFT_CACHE_DIR"});
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
  if (!xdg.empty()) setenv("XDG_CACHE_HOME", xdg.c_str(), 1);
  if (!own.empty()) setenv("WEFT_CACHE_DIR", own.c_str(), 1);
}

}  // namespace
}  // namespace weft
