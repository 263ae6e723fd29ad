// The run of a trial that begins as a copy of another one's.
#pragma once

#include <filesystem>

namespace weft::tune {

/// Copies the run directory `from`, in which nobody trains, with its checkpoints. `to` is there whole and synced or not
/// at all, whenever this process dies. Evaluations of `from` choose no best checkpoint of the copy: what the copy
/// trains under its own values does. Error(io).
void copy_run(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace weft::tune
