#include "weft/comm/mpi/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "weft/base/error.h"

namespace weft::comm {

namespace {

constexpr const char* kMoreMemory = "start fewer ranks on each host, or give them more memory and open files (ulimit)";

std::shared_ptr<std::byte> map_descriptor(int descriptor, int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED)
    fail(ErrorKind::io, "cannot map {} bytes of memory that ranks share: {}; {}", bytes, std::strerror(errno),
         kMoreMemory);
  madvise(memory, size, MADV_HUGEPAGE);  // a wish
  return {static_cast<std::byte*>(memory), [size](std::byte* mapped) { munmap(mapped, size); }};
}

}  // namespace

MemoryFile::MemoryFile(int64_t bytes)
    : descriptor_(memfd_create("weft", MFD_CLOEXEC)), bytes_(std::max<int64_t>(bytes, 1)) {
  if (descriptor_ < 0)
    fail(ErrorKind::io, "cannot make memory that ranks share: {}; {}", std::strerror(errno), kMoreMemory);
  if (ftruncate(descriptor_, bytes_) == 0) return;
  const int reason = errno;
  close(descriptor_);
  fail(ErrorKind::io, "cannot make {} bytes of memory that ranks share: {}; {}", bytes_, std::strerror(reason),
       kMoreMemory);
}

MemoryFile::~MemoryFile() { close(descriptor_); }

MemoryFileAddress MemoryFile::address() const {
  return {.process = getpid(), .descriptor = descriptor_, .bytes = bytes_};
}

std::shared_ptr<std::byte> MemoryFile::map() const { return map_descriptor(descriptor_, bytes_); }

std::shared_ptr<std::byte> map_memory_file(const MemoryFileAddress& address) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address.process, address.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0)
    fail(ErrorKind::io, "cannot open the memory of process {} on this host: {}", address.process, std::strerror(errno));
  try {
    std::shared_ptr<std::byte> memory = map_descriptor(descriptor, address.bytes);
    close(descriptor);
    return memory;
  } catch (...) {
    close(descriptor);
    throw;
  }
}

}  // namespace weft::comm
