#include "weft/base/append.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "weft/base/error.h"

namespace weft {

void append_whole(int descriptor, std::string_view record, const std::filesystem::path& path) {
  const off_t before = lseek(descriptor, 0, SEEK_END);
  size_t done = 0;
  int reason = ENOSPC;
  while (done < record.size()) {  // a second write, of what did not fit, tells the reason
    const ssize_t put = ::write(descriptor, record.data() + done, record.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) reason = errno;
    if (put <= 0) break;
    done += static_cast<size_t>(put);
  }
  if (done == record.size()) return;
  const bool restored = before >= 0 && ftruncate(descriptor, before) == 0;
  fail(ErrorKind::io, "cannot write '{}': {}{}; free some space, then go on with --resume", path.string(),
       std::strerror(reason), restored ? "" : " (and its last record is torn)");
}

void sync_appended(int descriptor, const std::filesystem::path& path) {
  if (fsync(descriptor) != 0)
    fail(ErrorKind::io, "cannot sync '{}': {}; look after the disk, then go on with --resume", path.string(),
         std::strerror(errno));
}

}  // namespace weft
