// This process's memory as the kernel reports it, to audit the plan's prediction.
#pragma once

#include <cstdint>
#include <string>

namespace weft::program {

/// Resident bytes now; 0 where the system does not say.
int64_t resident_bytes();
/// Of these what is no file's: code and mapped files are not counted.
int64_t anonymous_bytes();
/// The largest resident size since the start of the process or the last reset.
int64_t peak_resident_bytes();
/// Restarts peak_resident_bytes() from the current resident size; changes nothing where the system refuses.
void reset_peak_resident_bytes();

/// Error(usage) where this process may not use so much memory. Call it before anything is allocated.
void require_memory(const std::string& model, int64_t batch, int64_t planned_bytes, const std::string& next_step);

}  // namespace weft::program
