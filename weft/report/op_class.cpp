#include "weft/report/op_class.h"

#include <algorithm>
#include <string>

namespace weft::report {

namespace {

struct Class {
  std::string_view name;
  std::string_view part;  // of the op's name; the first line that fits counts
};

constexpr Class kClasses[] = {
    {"communication", "all_reduce"},
    {"communication", "all_gather"},
    {"communication", "reduce_scatter"},
    {"communication", "reduce_to_root"},
    {"communication", "broadcast"},
    {"convolutions, gradient of the data", "conv2d_backward_data"},
    {"convolutions, gradient of the weights", "conv2d_backward_weights"},
    {"convolutions, forward", "conv2d"},
    {"matrix products", "matmul"},
    {"recurrent layers", "lstm"},
    {"recurrent layers", "gru"},
    {"updates", "_update"},
    {"updates", "running_average"},
    {"reductions", "squared_norm"},
    {"normalisation", "_norm"},
    {"pooling", "pool2d"},
    {"losses", "cross_entropy"},
    {"losses", "ctc_"},
    {"losses", "count_correct"},
    {"softmax", "softmax"},
    {"reductions", "reduce_"},
    {"reductions", "argmax"},
    {"reductions", "cumulative_sum"},
    {"reorders", "reorder"},
    {"casts", "cast"},
    {"casts", "renew"},
    {"look-ups", "embedding"},
    {"look-ups", "gather"},
    {"look-ups", "one_hot"},
    {"file", "store"},
    {"file", "load"},
    {"copies", "copy_to_"},
    {"copies", "transpose"},
    {"copies", "concat"},
    {"copies", "slice"},
    {"copies", "pad"},
    {"copies", "causal_mask"},
    {"copies", "resize"},
    {"copies", "constant"},
    {"copies", "iota"},
    {"look-ups", "take"},
    {"elementwise", "bitwise_"},
    {"elementwise", "logical_"},
    {"elementwise", "shift_"},
    {"elementwise", "modulo"},
};

}  // namespace

std::string_view class_of(const OpDef& op) {
  if (op.name == "broadcast_to") return "copies";
  const auto fits = [&](const Class& one) { return op.name.find(one.part) != std::string::npos; };
  const auto* const found = std::find_if(std::begin(kClasses), std::end(kClasses), fits);
  if (found != std::end(kClasses)) return found->name;
  const bool sweeps = op.layout_rule == LayoutRule::elementwise || op.name == "dropout";
  return sweeps ? "elementwise" : "other";
}

}  // namespace weft::report
