// Content of data files, for the tests that write them.
#pragma once

#include "tests/support/files_for_tests.h"

namespace weft::data {

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

}  // namespace weft::data
