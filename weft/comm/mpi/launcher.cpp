#include "weft/comm/mpi/launcher.h"

#include <array>
#include <cstdlib>

namespace weft::comm {

bool started_by_launcher() {
  // Open MPI's mpirun; PMIx (srun --mpi=pmix and others); PMI 1 and 2 (srun --mpi=pmi2, MPICH's launchers).
  for (const char* name : std::array{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return true;
  return false;
}

}  // namespace weft::comm
