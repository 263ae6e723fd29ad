#include "weft/base/append.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"

namespace weft {
namespace {

using AppendWhole = FilesTest;

TEST_F(AppendWhole, AddsAtTheEnd) {
  write_atomically(path("log"), "one\n");
  const int descriptor = open(path("log").c_str(), O_WRONLY | O_APPEND);
  append_whole(descriptor, "two\n", path("log"));
  close(descriptor);
  EXPECT_EQ(read_text(path("log")), "one\ntwo\n");
}

TEST_F(AppendWhole, NamesTheFileAndTheReason) {
  const int descriptor = open("/dev/full", O_WRONLY);
  ASSERT_GE(descriptor, 0);
  expect_error([&] { append_whole(descriptor, "record", path("log")); }, ErrorKind::io,
               {path("log"), "No space left on device", "--resume"});
  close(descriptor);
}

}  // namespace
}  // namespace weft
