// The kernel of all ops that only move elements: strided copies, all of them together cut into one equal range for each
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/cpu/native/movement/strided_copy.h"
#include "weft/device/kernel.h"
#include "weft/graph/graph.h"

namespace weft::native {

struct CopyPart {
  StridedCopy copy;
  int input;  // operand that is read; -1: the kernel's own element
};
using CopyParts = std::vector<CopyPart>;

/// The parts write what they write in any order.
std::unique_ptr<Kernel> make_copies(const NodeSignature& node, const KernelOptions& options, CopyParts parts);

/// A walk as collapse() leaves it, through the result from its start to its end, of elements of one type: as copies of
/// contiguous runs or, where what is contiguous in the operand is not so in the result, plane by plane. Null where
/// neither runs nor planes are of a size worth it.
std::unique_ptr<Kernel> make_permutation(const NodeSignature& node, const KernelOptions& options,
                                         const std::vector<CopyDimension>& dimensions, Isa isa);

}  // namespace weft::native
