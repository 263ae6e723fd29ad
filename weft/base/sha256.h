// SHA-256 (FIPS 180-4) and HMAC (RFC 2104) of it: to prove that one knows a secret without saying it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
Sha256 hmac_sha256(std::string_view key, std::string_view message);
/// 64 hexadecimal digits.
std::string to_string(const Sha256& hash);

/// Takes as long wherever they differ: the time tells nobody how much of a guess was right.
bool equal_secrets(std::string_view a, std::string_view b);

/// So many bytes from the system's source for secrets, in hexadecimal digits. Error(io) where it gives none.
std::string random_hex(int bytes);

}  // namespace weft
