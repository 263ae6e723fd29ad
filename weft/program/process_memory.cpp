#include "weft/program/process_memory.h"

#include <fstream>
#include <string>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/kernel_files.h"
#include "weft/base/memory.h"

namespace weft::program {

namespace {

int64_t status_bytes(const std::string& key) { return 1024 * number_behind("/proc/self/status", key).value_or(0); }

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS:"); }
int64_t anonymous_bytes() { return status_bytes("RssAnon:"); }
int64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

void reset_peak_resident_bytes() {
  std::ofstream clear("/proc/self/clear_refs");  // "5": reset the high-water mark, proc(5)
  clear << "5";
}

void require_memory(const std::string& model, int64_t batch, int64_t planned_bytes, const std::string& next_step) {
  const int64_t limit = memory_limit_bytes();
  if (planned_bytes <= limit) return;
  fail(ErrorKind::usage, "'{}' with batch {} needs {}, this machine has {}; {}", model, batch,
       human_bytes(static_cast<double>(planned_bytes)), human_bytes(static_cast<double>(limit)), next_step);
}

}  // namespace weft::program
