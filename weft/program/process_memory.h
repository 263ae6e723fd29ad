// What the kernel says about this process's memory, to audit the plan's prediction.
#pragma once

#include <cstdint>
#include <string>

namespace weft::program {

/// Resident bytes now; 0 where the system does not say.
int64_t resident_bytes();
/// The largest resident size since the start of the process or the last reset.
int64_t peak_resident_bytes();
/// Lets peak_resident_bytes() start anew from what is resident now; where the system refuses, nothing changes.
void reset_peak_resident_bytes();

/// Bytes this process may use at most: the machine's memory or its control group's limit.
int64_t memory_limit_bytes();

/// Error(usage) where this process may not use that much; to be called before anything is allocated.
void require_memory(const std::string& model, int64_t batch, int64_t planned_bytes, const std::string& next_step);

}  // namespace weft::program
