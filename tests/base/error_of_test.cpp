// What exceptions of the system and of libraries say to users.
#include "weft/base/error_of.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <string>
#include <system_error>

namespace weft {
namespace {

template <typename Exception>
std::string said_of(const Exception& exception) {
  return error_of(std::make_exception_ptr(exception)).what();
}

TEST(ErrorOf, AnErrorOfWeftStaysAsItIs) {
  const Error error = error_of(std::make_exception_ptr(Error(ErrorKind::usage, "no such key")));
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_STREQ(error.what(), "no such key");
}

TEST(ErrorOf, OfTheSystemsTheNextStepIsSaid) {
  const auto code = [](std::errc reason) { return std::make_error_code(reason); };
  EXPECT_EQ(said_of(std::filesystem::filesystem_error("", "a/b", code(std::errc::permission_denied))),
            "cannot use 'a/b': Permission denied; check the path");
  EXPECT_EQ(said_of(std::system_error(code(std::errc::no_space_on_device))),
            "cannot write to standard output: No space left on device");
  EXPECT_EQ(
      said_of(std::system_error(code(std::errc::resource_unavailable_try_again))),
      "cannot start a thread: Resource temporarily unavailable; end other programs, or raise the limit of processes "
      "(`ulimit -u`)");
  EXPECT_EQ(said_of(std::bad_alloc()), "out of memory; choose a smaller batch or model");
}

TEST(ErrorOf, WhatWeftDoesNotKnowIsADefectOfItsOwn) {
  EXPECT_EQ(error_of(std::make_exception_ptr(std::runtime_error("odd"))).kind(), ErrorKind::internal);
}

}  // namespace
}  // namespace weft
