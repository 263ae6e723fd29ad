// What Slurm tells the processes of its jobs.
#pragma once

#include <string>

namespace weft::launch {

/// Of the environment; empty where it is not set.
std::string value_of_variable(const char* name);
bool is_in_slurm_job();

}  // namespace weft::launch
