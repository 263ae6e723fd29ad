#include "weft/comm/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace weft::comm {

void Doorbell::ring() {
  rings.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&rings), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Doorbell::sleep(uint32_t heard, double seconds) {
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  const auto whole = static_cast<time_t>(seconds);
  const timespec limit{.tv_sec = whole, .tv_nsec = static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  // The system compares the counter once more, so that no ring is lost between look and sleep.
  if (rings.load(std::memory_order_seq_cst) == heard)
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&rings), FUTEX_WAIT, heard, &limit, nullptr, 0);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace weft::comm
