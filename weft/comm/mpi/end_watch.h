// Bounds the very end of a rank: where it is stopped behind the last meeting of all, nobody else is left to miss it,
// and the launcher waits for ever.
#pragma once

#include <string>

namespace weft::comm {

/// From now until this process ends a small process beside it looks at /proc twice per second. Seen stopped (SIGSTOP)
/// at six looks in a row, this one is woken (SIGCONT), as it has only to end, and that is said on stderr as "weft: WHO
/// was stopped ...". Looks are counted rather than seconds: where the whole job is stopped, so is that process. For a
/// process without work left, from its main thread; without effect where no process can be started.
void watch_end(const std::string& who);

}  // namespace weft::comm
