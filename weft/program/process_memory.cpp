#include "weft/program/process_memory.h"

#include <fstream>
#include <optional>
#include <string>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/kernel_files.h"
#include "weft/base/memory.h"

namespace weft::program {

namespace {

/// Of pages that n processes have mapped, (n-1)/n; 0 where the system does not say.
int64_t bytes_of_peers() {
  const char* const rollup = "/proc/self/smaps_rollup";
  const std::optional<int64_t> resident = number_behind(rollup, "Rss:"), own = number_behind(rollup, "Pss:");
  return resident && own ? 1024 * (*resident - *own) : 0;
}

int64_t status_bytes(const std::string& key) { return 1024 * number_behind("/proc/self/status", key).value_or(0); }

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS:"); }
int64_t anonymous_bytes() { return status_bytes("RssAnon:"); }
int64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

void reset_peak_resident_bytes() {
  std::ofstream clear("/proc/self/clear_refs");  // "5": reset the high-water mark, proc(5)
  clear << "5";
}

MemoryGrowth::MemoryGrowth() {
  reset_peak_resident_bytes();
  resident_before_ = resident_bytes();
  peers_before_ = bytes_of_peers();
}

int64_t MemoryGrowth::peers_since() const { return bytes_of_peers() - peers_before_; }

void require_memory(const std::string& model, int64_t batch, int64_t planned_bytes, const std::string& next_step) {
  const int64_t limit = memory_limit_bytes();
  if (planned_bytes <= limit) return;
  fail(ErrorKind::usage, "'{}' with batch {} needs {}, this machine has {}; {}", model, batch,
       human_bytes(static_cast<double>(planned_bytes)), human_bytes(static_cast<double>(limit)), next_step);
}

}  // namespace weft::program
