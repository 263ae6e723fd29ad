#include "weft/comm/mpi/mpi_all_reduce.h"

#include <mpi.h>

#include <array>

#include "weft/base/error.h"

namespace weft::comm {

void mpi_all_reduce_sum(std::span<float> values) {
  const int code =
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (code != MPI_SUCCESS) fail(ErrorKind::communication, "MPI_Allreduce failed with code {}", code);
}

std::string mpi_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string whole(text.data());
  return whole.substr(0, whole.find_first_of(",\n"));
}

}  // namespace weft::comm
