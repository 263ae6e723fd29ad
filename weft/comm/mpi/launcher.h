// Whether this process is one of several that a launcher started, told from the environment alone.
#pragma once

namespace weft::comm {

/// True under `mpirun`, and under `srun` with PMI or PMIx. MPI is started there only; elsewhere a process is alone.
bool started_by_launcher();

}  // namespace weft::comm
