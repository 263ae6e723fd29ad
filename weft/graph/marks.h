// Marks: what passes note on a node for planning and reports, among its attributes. No op declares them, they change
// nothing of what a node computes, and no choice of a kernel depends on them. This table is the one place that knows
// which there are: text form, verification and signatures follow it.
#pragma once

#include <string>
#include <vector>

#include "weft/graph/attributes.h"

namespace weft {

struct OpDef;

inline constexpr const char* kInPlace = "in_place";       // pairs (output, input) that share memory, flattened
inline constexpr const char* kRecomputed = "recomputed";  // = true: see graph/recomputed.h
inline constexpr const char* kKept = "kept";              // = true: see graph/kept.h
inline constexpr const char* kExact = "exact";            // = true: sums of whole numbers, which f32 holds and no
                                                          // narrower type, nor an algorithm with fractions

bool is_mark(const std::string& name);

/// Whether it is a mark, of a value that this op can have. Error(usage) for pairs in place that the op does not allow.
bool accepts_mark(const OpDef& op, const std::string& node_name, const std::string& name, const AttributeValue& value);

/// The pairs that share memory; none where the node has no such mark.
const std::vector<int64_t>& in_place_pairs(const Attributes& attributes);

}  // namespace weft
