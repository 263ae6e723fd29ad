#include "weft/launch/slurm_environment.h"

#include <cstdlib>

namespace weft::launch {

std::string value_of_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_in_slurm_job() {
  return !value_of_variable("SLURM_JOB_ID").empty() && !value_of_variable("SLURM_JOB_NODELIST").empty();
}

}  // namespace weft::launch
