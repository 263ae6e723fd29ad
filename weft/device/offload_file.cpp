#include "weft/device/offload_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/parallel.h"

namespace weft {

namespace {

constexpr int64_t kReadBytes = 1 << 19;  // at least, by each thread
constexpr int kEndOfFile = -1;

/// A file without a name, or, where the file system knows none, one whose name is removed at once.
int open_unnamed(const std::string& directory) {
  const int descriptor = open(directory.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return descriptor;
  std::string name = directory + "/.weft-offload-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

std::string human(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

}  // namespace

OffloadFile::OffloadFile(std::string directory) : directory_(std::move(directory)) {
  descriptor_ = open_unnamed(directory_);
  if (descriptor_ < 0)
    fail(ErrorKind::io, "offload = '{}': cannot make a file there: {}; give a directory on a disk with free space",
         directory_, std::strerror(errno));
}

OffloadFile::~OffloadFile() { close(descriptor_); }

void OffloadFile::reserve(int64_t bytes) {
  if (bytes <= bytes_) return;
  struct statvfs status {};
  const bool is_known = fstatvfs(descriptor_, &status) == 0;
  const auto free_bytes = static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
  // Where a file system cannot take space, it is taken by writing: not to be begun in vain.
  const bool is_vain = is_known && free_bytes < bytes - bytes_;
  const int code = is_vain ? ENOSPC : posix_fallocate(descriptor_, bytes_, bytes - bytes_);
  if (code != 0)
    fail(ErrorKind::io, "offload = '{}': cannot take the {} that the step keeps there: {}{}; {}", directory_,
         human(bytes), std::strerror(code), is_known ? fmt::format(" ({} are free)", human(free_bytes)) : "",
         code == EFBIG ? "raise the limit on the size of files (`ulimit -f`)"
                       : "make room, or give a directory on a disk with more");
  bytes_ = bytes;
}

bool OffloadFile::is_in_memory() const {
  struct statfs status {};
  if (fstatfs(descriptor_, &status) != 0) return false;
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

void OffloadFile::write(int64_t offset, const std::byte* data, int64_t bytes) {
  for (int64_t begin = 0; begin < bytes; begin += kOffloadPieceBytes) {
    const int64_t piece = std::min(kOffloadPieceBytes, bytes - begin), rest = piece % kFileBlockBytes;
    put(offset + begin, data + begin, piece - rest);
    if (rest > 0) {  // a part of a page that is not in the cache would have to be read first
      std::memcpy(last_block_.data(), data + begin + piece - rest, static_cast<size_t>(rest));
      put(offset + begin + piece - rest, last_block_.data(), kFileBlockBytes);
    }
    const Range range{offset + begin, rest > 0 ? piece - rest + kFileBlockBytes : piece};
    sync(range, SYNC_FILE_RANGE_WRITE);
    while (pending_count_ == pending_.size() || (pending_count_ > 0 && pending_bytes_ > kOffloadWindowBytes))
      settle_oldest();
    pending_[(first_pending_ + pending_count_++) % pending_.size()] = range;
    pending_bytes_ += range.bytes;
  }
}

void OffloadFile::read(int64_t offset, std::byte* data, int64_t bytes, int threads) {
  std::atomic<int> failure = 0;
  parallel_for(threads, bytes, kReadBytes, [&](int64_t begin, int64_t end) {
    if (const int code = get(offset + begin, data + begin, end - begin); code != 0) failure = code;
  });
  if (failure == kEndOfFile)
    fail(ErrorKind::io, "offload = '{}': the file ends before {} bytes, which were written there; check the disk",
         directory_, offset + bytes);
  if (failure != 0) fail_at("reading from", failure);
  posix_fadvise(descriptor_, offset, bytes, POSIX_FADV_DONTNEED);
}

/// 0, what the system calls the failure, or kEndOfFile.
int OffloadFile::get(int64_t offset, std::byte* data, int64_t bytes) const noexcept {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t got = pread(descriptor_, data + done, static_cast<size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : kEndOfFile;
    done += got;
  }
  return 0;
}

void OffloadFile::read_ahead(int64_t offset, int64_t bytes) {
  posix_fadvise(descriptor_, offset, bytes, POSIX_FADV_WILLNEED);
}

void OffloadFile::put(int64_t offset, const std::byte* data, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t put = pwrite(descriptor_, data + done, static_cast<size_t>(bytes - done), offset + done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_at("writing to", errno);
    done += put;
  }
}

/// File systems that cannot do it send the bytes in their own time.
void OffloadFile::sync(const Range& range, unsigned flags) {
  if (sync_file_range(descriptor_, range.offset, range.bytes, flags) == 0) return;
  if (errno == EIO || errno == ENOSPC || errno == EDQUOT) fail_at("writing to", errno);
}

void OffloadFile::settle_oldest() {
  const Range range = pending_[first_pending_];
  first_pending_ = (first_pending_ + 1) % pending_.size();
  --pending_count_;
  pending_bytes_ -= range.bytes;
  sync(range, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  posix_fadvise(descriptor_, range.offset, range.bytes, POSIX_FADV_DONTNEED);
}

void OffloadFile::fail_at(const char* doing, int code) const {
  fail(ErrorKind::io, "offload = '{}': {} the file failed: {}; check the disk, or give a directory on another",
       directory_, doing, std::strerror(code));
}

}  // namespace weft
