#include "tests/support/checked_memory.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <set>

#include "weft/base/error.h"

namespace weft {

namespace {

/// A handler of faults gets nothing but an address: what it looks at must be global.
std::set<const CheckedMemory*>& all_memories() {
  static std::set<const CheckedMemory*> all;
  return all;
}

/// Ranks that are threads make theirs at a time.
std::mutex& all_memories_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// The process ends here, so that nothing is to be kept safe from what the fault has interrupted.
void on_fault(int number, siginfo_t* info, void*) {
  signal(number, SIG_DFL);
  for (const CheckedMemory* memory : all_memories()) {
    const std::string message = memory->describe_fault(info->si_addr);
    if (message.empty()) continue;
    const ssize_t written = write(STDERR_FILENO, message.data(), message.size());
    _exit(written > 0 ? 1 : 2);
  }
}  // any other fault comes again, and ends the process as usual

void catch_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
}

int64_t page_up(int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

AddressRange pages_of(const void* address, int64_t bytes) {
  if (bytes == 0) return {};
  const auto begin = reinterpret_cast<uintptr_t>(address), page = static_cast<uintptr_t>(kPageBytes);
  const uintptr_t end = begin + static_cast<uintptr_t>(bytes);
  return {reinterpret_cast<const std::byte*>(begin / page * page),
          reinterpret_cast<const std::byte*>((end + page - 1) / page * page)};
}

CheckedMemory::CheckedMemory() {
  const std::lock_guard lock(all_memories_mutex());
  if (all_memories().empty()) catch_faults();
  all_memories().insert(this);
}

CheckedMemory::~CheckedMemory() {
  const std::lock_guard lock(all_memories_mutex());
  all_memories().erase(this);
}

std::shared_ptr<std::byte> CheckedMemory::allocate(int64_t bytes, const std::string& what) {
  const int64_t size = page_up(std::max<int64_t>(bytes, 1)) + 2 * kPageBytes;  // with a closed page at either end
  void* const memory =
      mmap(nullptr, static_cast<size_t>(size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail(ErrorKind::io, "no memory for {} bytes of {}", bytes, what);
  auto* const first = static_cast<std::byte*>(memory);
  {
    const std::lock_guard lock(mutex_);
    regions_[first] = {size, what};
  }
  return {first + size - kPageBytes - align_up(bytes),
          [self = shared_from_this(), first, size](std::byte*) { self->give_back(first, size); }};
}

void CheckedMemory::give_back(std::byte* first, int64_t size) {
  const std::lock_guard lock(mutex_);
  regions_.erase(first);
  values_.erase(values_.lower_bound(first), values_.lower_bound(first + size));
  munmap(first, static_cast<size_t>(size));
}

void CheckedMemory::copy_in(std::byte* to, const void* from, int64_t bytes) {
  const AddressRange pages = pages_of(to, bytes);
  open(pages, true);
  std::memcpy(to, from, static_cast<size_t>(bytes));
  close(pages);
}

void CheckedMemory::copy_out(void* to, const std::byte* from, int64_t bytes) {
  const AddressRange pages = pages_of(from, bytes);
  open(pages, false);
  std::memcpy(to, from, static_cast<size_t>(bytes));
  close(pages);
}

bool CheckedMemory::holds(const void* address, int64_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  const auto after = regions_.upper_bound(begin);
  if (after == regions_.begin()) return false;
  const auto& [first, region] = *std::prev(after);
  return begin + bytes <= first + region.bytes;
}

void CheckedMemory::open(const AddressRange& pages, bool writable) const {
  if (pages.begin == pages.end) return;
  const int failed = mprotect(const_cast<std::byte*>(pages.begin), static_cast<size_t>(pages.end - pages.begin),
                              writable ? PROT_READ | PROT_WRITE : PROT_READ);
  check(failed == 0, "pages of the checked memory cannot be opened");
}

void CheckedMemory::close(const AddressRange& pages) const {
  if (pages.begin == pages.end) return;
  const int failed =
      mprotect(const_cast<std::byte*>(pages.begin), static_cast<size_t>(pages.end - pages.begin), PROT_NONE);
  check(failed == 0, "pages of the checked memory cannot be closed");
}

void CheckedMemory::name_value(const void* address, int64_t bytes, const std::string& value) {
  const AddressRange pages = pages_of(address, bytes);
  const std::lock_guard lock(mutex_);
  if (pages.begin != pages.end) values_[pages.begin] = {pages.end - pages.begin, value};
}

std::string CheckedMemory::describe_fault(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  const auto found = [at](const auto& map) -> const std::string* {
    const auto after = map.upper_bound(at);
    if (after == map.begin()) return nullptr;
    const auto& [first, region] = *std::prev(after);
    return at < first + region.bytes ? &region.what : nullptr;
  };
  const std::string* const region = found(regions_);
  if (region == nullptr) return "";
  const std::string* const value = found(values_);
  return fmt::format(
      "checked host: {} touched {}, memory of the device that {}\n", running_.empty() ? "host code" : running_,
      value == nullptr ? *region : fmt::format("'{}' in {}", *value, *region),
      running_.empty() ? "only kernels and copies may touch" : "is not among its operands, or not to be written");
}

}  // namespace weft
