// Which process works on a trial, in words that name no other process, also after a restart of the machine.
#pragma once

#include <string>

namespace weft::tune {

/// Of this process: the machine's boot, the process's number and when it began.
std::string this_process();
/// Whether that process still runs here.
bool is_running(const std::string& owner);

}  // namespace weft::tune
