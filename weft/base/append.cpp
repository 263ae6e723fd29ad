#include "weft/base/append.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "weft/base/error.h"

namespace weft {

void append_whole(int descriptor, std::string_view record, const std::filesystem::path& path) {
  const off_t before = lseek(descriptor, 0, SEEK_END);
  const ssize_t put = ::write(descriptor, record.data(), record.size());
  if (put == static_cast<ssize_t>(record.size())) return;
  const int reason = put < 0 ? errno : ENOSPC;
  const bool restored = before >= 0 && ftruncate(descriptor, before) == 0;
  fail(ErrorKind::io, "cannot write '{}': {}{}; free some space, then go on with --resume", path.string(),
       std::strerror(reason), restored ? "" : " (and its last record is torn)");
}

}  // namespace weft
