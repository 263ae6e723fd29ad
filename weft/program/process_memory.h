// This process's memory as the kernel reports it, to audit the plan's prediction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/graph/graph.h"

namespace weft::program {

/// Resident bytes now; 0 where the system does not say.
int64_t resident_bytes();
/// Of these what is no file's: code and mapped files are not counted.
int64_t anonymous_bytes();
/// Of these what can be executed: code of the program and its libraries, and code that was made at run time. 0 where
/// the system does not say.
int64_t code_bytes();
/// The largest resident size since the start of the process or the last reset.
int64_t peak_resident_bytes();
/// Restarts peak_resident_bytes() from the current resident size; changes nothing where the system refuses.
void reset_peak_resident_bytes();

/// How much memory this process has taken since a moment. Of memory that the ranks of a host share each rank counts its
/// part: the kernel shows every page that a rank has read of its peers as resident in both.
class MemoryGrowth {
 public:
  /// From now on; restarts the peak.
  MemoryGrowth();
  /// The peak from now on: what was taken and given back before is no part of it, such as buffers by which links were
  /// measured.
  void restart_peak() const { reset_peak_resident_bytes(); }
  /// With all pages of peers; quick.
  int64_t with_peers() const { return resident_bytes() - resident_before_; }
  /// Its own, now and at the peak. The kernel looks at all pages: some milliseconds per GB.
  int64_t now() const { return with_peers() - peers_since(); }
  int64_t peak() const { return peak_resident_bytes() - resident_before_ - peers_since(); }
  /// Of these, code: pages that were first used since then, and kernels that oneDNN has made. No plan counts it.
  int64_t code() const { return code_bytes() - code_before_; }

 private:
  int64_t peers_since() const;

  int64_t resident_before_ = 0, peers_before_ = 0, code_before_ = 0;
};

/// What these graphs, their plans and their kernels take beside what plans count. An estimate by the number of nodes:
/// benchmarks/strategy_memory.py measures how good it is.
int64_t graph_and_kernel_bytes(const std::vector<const Graph*>& graphs);

/// Error(usage) where this process may not use so much memory. Call it before anything is allocated.
void require_memory(const std::string& model, int64_t batch, int64_t planned_bytes, const std::string& next_step);

}  // namespace weft::program
