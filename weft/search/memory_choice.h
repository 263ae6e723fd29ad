// What a rank keeps of its activations, what it computes twice, and what it writes to a file, so that the least time is
// lost under a limit on memory. Blocks of equal cost are counted and not told apart: dynamic programming over the
// classes of blocks, with the pairs of bytes saved and seconds lost that no other pair beats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace weft::search {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// Blocks that cost alike.
struct BlockClass {
  double kept_bytes = 0;         // of what the backward part reads, and of what other blocks read
  double boundary_bytes = 0;     // of the latter alone, which stay where the block is computed twice
  double recompute_seconds = 0;  // to compute it once more
  double file_seconds = kNever;  // to write what it keeps to a file and read it back; infinite: there is no file
  int64_t count = 1;
  friend bool operator==(const BlockClass&, const BlockClass&) = default;
};

/// Seconds are those of one micro-batch.
struct MemoryChoice {
  bool fits = false;
  double seconds = 0;                   // that are lost
  double bytes = 0;                     // in memory at the peak
  int64_t recomputed = 0, in_file = 0;  // blocks
  double bound_seconds = 0;             // that are lost at least, whatever is chosen
  double least_bytes = 0;               // that would do
  int64_t points = 0;                   // that were compared
};

/// `in_flight`: micro-batches whose activations are there at a time. While a block is computed twice, all it keeps is
/// there once more. At most `most_points` pairs are carried on from class to class; where there are more, those between
/// are left out, and the bound stays below what is chosen.
MemoryChoice choose_kept(const std::vector<BlockClass>& classes, double free_bytes, double in_flight,
                         size_t most_points = 1 << 14);

}  // namespace weft::search
