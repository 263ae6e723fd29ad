#include "weft/step/micro_batches.h"

#include <fmt/format.h>

#include "weft/base/error.h"

namespace weft::step {

int64_t rows_of_micro_batch(const spec::RunSpec& spec, int64_t rows) {
  const int64_t count = micro_batches_of(spec);
  if (rows % count == 0) return rows / count;
  const int64_t below = rows - rows % count, above = below + count;
  fail(ErrorKind::usage,
       "pipeline.micro_batches = {} do not divide the {} samples that a rank takes of a batch; choose a batch with {} "
       "samples for each rank along mesh.data, or another number of micro-batches",
       count, rows, below > 0 ? fmt::format("{} or {}", below, above) : std::to_string(above));
}

}  // namespace weft::step
