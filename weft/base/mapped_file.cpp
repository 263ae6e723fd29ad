#include "weft/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weft/base/error.h"

namespace weft {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(ErrorKind::io, "cannot open '{}': {}; check the path", path.string(), std::strerror(errno));
  struct stat status {};
  int code = fstat(descriptor, &status) != 0 ? errno : S_ISREG(status.st_mode) ? 0 : EINVAL;
  const auto size = static_cast<size_t>(status.st_size);
  void* address = nullptr;
  if (code == 0 && size > 0) {  // nothing cannot be mapped
    address = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (address == MAP_FAILED) code = errno;
  }
  close(descriptor);
  if (code != 0)
    fail(ErrorKind::io, "cannot read '{}': {}; check that it is a file", path.string(), std::strerror(code));
  if (address != nullptr) bytes_ = {static_cast<const uint8_t*>(address), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

void MappedFile::will_need(size_t offset, size_t count) const {
  if (offset >= bytes_.size()) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page, end = std::min(bytes_.size(), offset + count);
  madvise(const_cast<uint8_t*>(bytes_.data()) + begin, end - begin, MADV_WILLNEED);  // a hint: no answer matters
}

void MappedFile::drop(std::span<const std::byte> part) const {
  const auto file = std::as_bytes(bytes_);
  if (part.empty() || part.data() < file.data() || part.data() + part.size() > file.data() + file.size()) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto first = static_cast<size_t>(part.data() - file.data());
  const size_t begin = (first + page - 1) / page * page, end = (first + part.size()) / page * page;
  if (begin < end) madvise(const_cast<uint8_t*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace weft
