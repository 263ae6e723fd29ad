// What the batch-norm kernels share.
#pragma once

#include <optional>
#include <string>

#include "weft/cpu/native/support/channel_view.h"
#include "weft/graph/graph.h"

namespace weft::native {

/// What is applied to the normalised numbers.
enum class Activation { none, relu, relu6 };
constexpr float kSix = 6;  // the bound of relu6
/// nullopt for those that the kernels do not have.
std::optional<Activation> activation_of(const NodeSignature& node);

/// The common view of the rank-2 or rank-4 operands; nullopt with the reason where the kernels cannot serve the node.
std::optional<ChannelView> batch_norm_view(const NodeSignature& node, std::string& why_not);

}  // namespace weft::native
