// Which process works on a trial, in words that name no other process, also after a restart of the machine.
#pragma once

#include <cstdint>
#include <string>

namespace weft::tune {

/// Of a process of this machine: the machine's boot, the process's number and when it began. Empty where it has ended.
std::string identity_of(int64_t process);
std::string this_process();
/// Of a trial that trains on this host, or is about to: its tuner, and the process that trains once there is one.
std::string owner_here(const std::string& tuner, const std::string& training = "");
/// Whether a trial of these owners takes a place of this host, not of a worker elsewhere.
bool is_here(const std::string& owners);
/// Whether one of these processes, separated by blanks, still runs here.
bool is_running(const std::string& owners);

}  // namespace weft::tune
