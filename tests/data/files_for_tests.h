// Small data files written by the tests, and the error that reading them gives.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "weft/base/error.h"

namespace weft::data {

using Bytes = std::vector<uint8_t>;

/// A fresh folder per test, removed at its end.
class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("weft-") + test->test_suite_name() + "-" + test->name() + "-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }

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

  std::filesystem::path folder_;
};

/// An IDX file: type 0x08, big-endian dimensions, content.
inline Bytes idx_bytes(const std::vector<uint32_t>& dims, const Bytes& content) {
  Bytes bytes{0, 0, 8, static_cast<uint8_t>(dims.size())};
  for (const uint32_t dim : dims)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(dim >> shift));
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

/// 0, 1, 2, ... modulo 256.
inline Bytes counting_bytes(size_t count) {
  Bytes bytes(count);
  for (size_t at = 0; at < count; ++at) bytes[at] = static_cast<uint8_t>(at);
  return bytes;
}

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

}  // namespace weft::data
