// How an operand of an elementwise op is read while the output's memory is walked from its start to its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/cpu/native/support/stored_type.h"
#include "weft/tensor/tensor.h"

namespace weft::native {

struct BroadcastOperand {
  enum class Kind {
    direct,   // same shape and layout as the output
    scalar,   // one element
    run,      // element (i / inner) % period for output element i: suffixes, channels, rows
    blocked,  // channels of an output in blocks of `inner` with `positions` rows each
    strided,  // any other broadcast to a plain output
  };
  Kind kind = Kind::direct;
  int64_t period = 1, inner = 1, positions = 1;
  std::vector<int64_t> dims, strides;  // strided: the output's dimensions, the operand's strides (0: broadcast)

  /// Writes the operand's elements for output elements [begin, begin + count) to `to`. Word: float, which stands for
  /// anything of 4 bytes, or Bf16.
  template <typename Word>
  void gather(const Word* from, int64_t begin, int64_t count, Word* to) const;
};

/// nullopt with the reason where the operand cannot be read in the output's layout.
std::optional<BroadcastOperand> broadcast_operand(const TensorType& operand, const TensorType& output,
                                                  std::string& why_not);

}  // namespace weft::native
