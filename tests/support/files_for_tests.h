// A folder of files for a test, and the check that an action fails with the right message.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "weft/base/error.h"

namespace weft {

using Bytes = std::vector<uint8_t>;

/// A fresh folder per test, removed at its end.
class FilesTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& name, const Bytes& content) const {
    std::ofstream file(path(name), std::ios::binary);
    file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    return path(name);
  }

  std::string write_gzip(const std::string& name, const Bytes& content) const {
    const gzFile file = gzopen(path(name).c_str(), "wb");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    return path(name);
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

/// Expects an Error of the kind whose message holds all the texts.
inline void expect_error(const std::function<void()>& action, ErrorKind kind, const std::vector<std::string>& texts) {
  try {
    action();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& text : texts)
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << "'" << text << "' not in: " << error.what();
  }
}

}  // namespace weft
