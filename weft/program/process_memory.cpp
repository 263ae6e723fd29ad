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

/// Of pages in shared memory that n processes have mapped, (n-1)/n; 0 where the system does not say. Pages of files are
/// left out: how many processes have mapped the program changes whenever another weft begins or ends.
int64_t bytes_of_peers() {
  const std::optional<int64_t> resident = number_behind("/proc/self/status", "RssShmem:");
  const std::optional<int64_t> own = number_behind("/proc/self/smaps_rollup", "Pss_Shmem:");
  return resident && own ? 1024 * (*resident - *own) : 0;
}

int64_t status_bytes(const std::string& key) { return 1024 * number_behind("/proc/self/status", key).value_or(0); }

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS:"); }
int64_t anonymous_bytes() { return status_bytes("RssAnon:"); }
int64_t code_bytes() {
  // "7f00-7f10 r-xp ... FILE" begins a mapping, "Rss:  12 kB" stands below.
  std::ifstream maps("/proc/self/smaps");
  int64_t kilobytes = 0;
  bool is_code = false;
  for (std::string line; std::getline(maps, line);) {
    const size_t key = line.find_first_of(": ");
    if (key == std::string::npos) continue;
    if (line[key] == ' ')
      is_code = line.find('x', key) == key + 3;
    else if (is_code && line.starts_with("Rss:"))
      kilobytes += std::stoll(line.substr(key + 1));
  }
  return 1024 * kilobytes;
}

int64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

void reset_peak_resident_bytes() {
  std::ofstream clear("/proc/self/clear_refs");  // "5": reset the high-water mark, proc(5)
  clear << "5";
}

MemoryGrowth::MemoryGrowth() {
  reset_peak_resident_bytes();
  resident_before_ = resident_bytes();
  peers_before_ = bytes_of_peers();
  code_before_ = code_bytes();
}

int64_t MemoryGrowth::peers_since() const { return bytes_of_peers() - peers_before_; }

int64_t graph_and_kernel_bytes(const std::vector<const Graph*>& graphs) {
  constexpr int64_t kOnceBytes = 1'700'000, kBytesPerNode = 4300;
  int64_t bytes = kOnceBytes;
  for (const Graph* graph : graphs) bytes += kBytesPerNode * static_cast<int64_t>(graph->nodes().size());
  return bytes;
}

void require_memory(const std::string& model, int64_t batch, int64_t planned_bytes, const std::string& next_step) {
  const int64_t limit = memory_limit_bytes();
  if (planned_bytes <= limit) return;
  fail(ErrorKind::usage, "'{}' with batch {} needs {}, this machine has {}; {}", model, batch,
       human_bytes(static_cast<double>(planned_bytes)), human_bytes(static_cast<double>(limit)), next_step);
}

}  // namespace weft::program
