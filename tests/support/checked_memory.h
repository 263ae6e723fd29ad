// Memory that nobody may touch but kernels and copies, and these only what is theirs: pages without access, opened for
// the time of a call. Whoever touches them otherwise ends the process with a message that names what lies there.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "weft/device/memory_space.h"

namespace weft {

inline constexpr int64_t kPageBytes = 4096;

/// Addresses from begin to before end.
struct AddressRange {
  const std::byte *begin = nullptr, *end = nullptr;
};
/// The pages on which the bytes lie; none for no bytes.
AddressRange pages_of(const void* address, int64_t bytes);

class CheckedMemory : public MemorySpace, public std::enable_shared_from_this<CheckedMemory> {
 public:
  CheckedMemory();
  ~CheckedMemory() override;
  CheckedMemory(const CheckedMemory&) = delete;
  CheckedMemory& operator=(const CheckedMemory&) = delete;

  bool is_host() const override { return false; }
  /// Wants the memory in a shared_ptr, which what is allocated holds. Ends at a page's end, but for alignment.
  std::shared_ptr<std::byte> allocate(int64_t bytes, const std::string& what) override;
  void copy_in(std::byte* to, const void* from, int64_t bytes) override;
  void copy_out(void* to, const std::byte* from, int64_t bytes) override;

  /// Whether all of it is of this memory.
  bool holds(const void* address, int64_t bytes) const;
  void open(const AddressRange& pages, bool writable) const;
  void close(const AddressRange& pages) const;
  /// What lies there from now on, and who runs (empty: nobody), for messages.
  void name_value(const void* address, int64_t bytes, const std::string& value);
  void set_running(const std::string& who) { running_ = who; }

  /// For the handler of faults: the message, empty where the address is not of this memory.
  std::string describe_fault(const void* address) const;

 private:
  void give_back(std::byte* first, int64_t size);

  struct Region {
    int64_t bytes;
    std::string what;
  };
  mutable std::mutex mutex_;
  std::map<const std::byte*, Region> regions_;  // by their first page
  std::map<const std::byte*, Region> values_;   // by their first page: the last that was written there
  std::string running_;
};

}  // namespace weft
