#include "weft/base/mapped_file.h"

#include "tests/support/files_for_tests.h"

namespace weft {
namespace {

using MappedFileTest = FilesTest;

TEST_F(MappedFileTest, HoldsTheFile) {
  const Bytes content{1, 2, 3, 4, 5};
  MappedFile file(write("a", content));
  file.will_need(0, 5);
  file.will_need(4, 100);
  file.will_need(9, 1);
  const MappedFile moved(std::move(file));
  EXPECT_EQ(Bytes(moved.bytes().begin(), moved.bytes().end()), content);
  EXPECT_TRUE(MappedFile(write("empty", {})).bytes().empty());
}

TEST_F(MappedFileTest, WhatIsNoFileIsNamed) {
  expect_error([&] { MappedFile(path("none")); }, ErrorKind::io, {"none'", "No such file"});
  expect_error([&] { MappedFile(path("")); }, ErrorKind::io, {"check that it is a file"});
}

}  // namespace
}  // namespace weft
