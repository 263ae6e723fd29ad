#include "weft/device/memory_space.h"

#include <cstring>

namespace weft {

namespace {

class HostMemory : public MemorySpace {
 public:
  bool is_host() const override { return true; }
  std::shared_ptr<std::byte> allocate(int64_t bytes, const std::string&) override { return allocate_aligned(bytes); }
  void copy_in(std::byte* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void copy_out(void* to, const std::byte* from, int64_t bytes) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
};

}  // namespace

std::shared_ptr<MemorySpace> host_memory() { return std::make_shared<HostMemory>(); }

}  // namespace weft
