// Applies a limit on all memory to the arena of the training step, and says what to do where the limit is too small.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "weft/compile/compile.h"
#include "weft/program/step_cache.h"
#include "weft/spec/run_spec.h"

namespace weft::program {

/// spec.memory_limit in bytes; INT64_MAX where there is none.
int64_t memory_limit_of(const spec::RunSpec& spec);

/// Brings the step of this shape, and all others of the cache, under spec.memory_limit. Where needed, it recomputes
/// activations and, with spec.offload, keeps them in a file. `other_bytes` is the planned memory outside the arena.
/// Does nothing where there is no limit. Error(usage) where the limit cannot be met, with the least limit that can be,
/// the cause, and the next step.
/// `seeks_least`: false, where the error is not shown to the user, saves the time that the least limit takes.
void keep_to_memory_limit(StepCache& steps, const spec::RunSpec& spec, int64_t other_bytes,
                          const spec::StepShape& shape, bool seeks_least = true);
/// Of the spec's own batch.
void keep_to_memory_limit(StepCache& steps, const spec::RunSpec& spec, int64_t other_bytes);

/// Brings the step of this shape into as little arena as weft can by recomputation, and with `offload` a file. A search
/// for less memory than there can be ends with more than one for a limit just above: so this tries limits, the next one
/// 2 % below what the last one took. Returns the bytes of the arena.
int64_t keep_to_least_arena(StepCache& steps, const spec::StepShape& shape);

/// Error(usage) where a step other than the training step exceeds the limit with an arena of `arena_bytes`.
void require_memory_limit(const spec::RunSpec& spec, int64_t other_bytes, int64_t arena_bytes);

/// "61 nodes run twice to keep within 1.50 GB: +9.0 % flops, about +11 % time"; empty where nothing runs twice.
std::string describe_recompute(const CompiledStep& compiled, const spec::RunSpec& spec);

/// "12 activations, 410 MB, are written to a file in '/scratch' in each step and read back: about 190 ms, +30 % time,
/// 20 ms of it waiting for the disk, where the disk moves 1GB per second"; empty where none is.
std::string describe_offload(const CompiledStep& compiled, const spec::RunSpec& spec);

/// Opens the file in spec.offload, where that is given and the arena has no file yet, and reserves its space for the
/// steps compiled so far. Lines for the user go to `note`, which may be empty. Error(io) where there is no such
/// directory or too little space.
void open_offload_file(Arena& arena, const StepCache& steps, const spec::RunSpec& spec,
                       const std::function<void(const std::string&)>& note);

}  // namespace weft::program
