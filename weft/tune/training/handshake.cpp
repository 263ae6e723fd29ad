#include "weft/tune/training/handshake.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/sha256.h"

namespace weft::tune {

namespace {

constexpr int kTokenBytes = 24;
constexpr size_t kShortestToken = 16;  // characters

}  // namespace

std::string proof_of(Side side, const std::string& token, const std::string& tuner_nonce,
                     const std::string& worker_nonce) {
  const char* name = side == Side::tuner ? "tuner" : "worker";
  return to_string(hmac_sha256(token, fmt::format("weft tune {} {} {}", name, tuner_nonce, worker_nonce)));
}

std::string version_trouble(const std::string& tuner, int tuner_protocol, const std::string& worker,
                            int worker_protocol) {
  if (tuner == worker && tuner_protocol == worker_protocol) return "";
  return fmt::format(
      "the worker is weft {} (protocol {}), the tuner weft {} (protocol {}), whose trials might train otherwise; "
      "install "
      "one weft on both hosts",
      worker, worker_protocol, tuner, tuner_protocol);
}

std::string kept_token(const std::filesystem::path& file) {
  const int made = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0 && errno == EEXIST) return read_token(file);
  if (made < 0) fail(ErrorKind::io, "cannot write '{}': {}", file.string(), std::strerror(errno));
  const std::string token = random_hex(kTokenBytes), line = token + "\n";
  const bool is_written =
      write(made, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && fsync(made) == 0;
  close(made);
  if (!is_written) fail(ErrorKind::io, "cannot write '{}'; make room there", file.string());
  return token;
}

std::string read_token(const std::filesystem::path& file) {
  std::string token = read_text(file);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.size() < kShortestToken)
    fail(ErrorKind::usage,
         "the token in '{}' has {} characters, and {} are wanted; copy the file `token` of the study's folder there",
         file.string(), token.size(), kShortestToken);
  return token;
}

}  // namespace weft::tune
