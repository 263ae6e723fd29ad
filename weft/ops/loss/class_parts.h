// Losses of logits [N,C] of which each rank has those of some classes. Passes alone make the ops.
//   class_terms(logits[N,C], labels i32[N], largest[N], place) {label_smoothing=0, ignore_index=-100, parts} -> [2,N]
//   class_terms_backward(loss_gradient[N], logits[N,C], labels, log_sum[N], place) {the same} -> [N,C]
// The part's classes are place C to (place + 1) C. A label that is no class gives NaN, which shows in the loss.
#pragma once

#include <vector>

#include "weft/graph/op_def.h"

namespace weft::ops {

inline constexpr const char* kClassTerms = "class_terms";
inline constexpr const char* kClassTermsBackward = "class_terms_backward";

void add_class_part_ops(OpRegistry& registry);

// OpDef::in_parts of cross_entropy, of its gradient and of count_correct.
std::vector<ValueId> cross_entropy_in_parts(ComposedContext& context);
std::vector<ValueId> cross_entropy_backward_in_parts(ComposedContext& context);
std::vector<ValueId> count_correct_in_parts(ComposedContext& context);

}  // namespace weft::ops
