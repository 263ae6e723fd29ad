// The message of the error that a call ends with, for tests of messages.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "weft/base/error.h"

namespace weft::test {

/// "no error" where there is none. Expects the kind where one is given.
template <typename Call>
std::string error_of(Call&& call, std::optional<ErrorKind> kind = {}) {
  try {
    call();
  } catch (const Error& error) {
    if (kind) {
      EXPECT_EQ(error.kind(), *kind) << error.what();
    }
    return error.what();
  }
  return "no error";
}

}  // namespace weft::test
