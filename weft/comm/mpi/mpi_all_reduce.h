// MPI's own all-reduce, to be compared with.
#pragma once

#include <span>
#include <string>

namespace weft::comm {

/// In place, over all ranks that MPI started; blocks without a bound.
void mpi_all_reduce_sum(std::span<float> values);

/// "Open MPI v4.1.4"
std::string mpi_version();

}  // namespace weft::comm
