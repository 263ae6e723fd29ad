// Which core a thread runs on.
#pragma once

#include <vector>

namespace weft {

/// The cores that the calling thread may run on, by rising number.
std::vector<int> allowed_cores();

/// From now on the calling thread runs on this core alone. false where the system refuses.
bool pin_this_thread(int core);

/// The same of the `threads` threads that work together where the calling thread runs loops on so many
/// (base/parallel.h): each gets one of the cores, in turn. The calling thread is the first of them.
void pin_team(int threads, const std::vector<int>& cores);

}  // namespace weft
