// Images of integers whose channels lie side by side, and the windows that slide over them.
#pragma once

#include <optional>
#include <string>

#include "weft/base/isa.h"
#include "weft/device/kernel.h"
#include "weft/ops/integer/quantized.h"

namespace weft::native {

struct IntegerImages {
  int64_t images, channels, rows, columns;
  int64_t outputs, out_rows, out_columns;
  int64_t kernel_rows, kernel_columns;
  ops::IntegerWindow window;

  int64_t group_channels() const { return channels / window.groups; }
  /// One channel in and out per group.
  bool is_depthwise() const { return window.groups > 1 && window.groups == channels && outputs == channels; }
};

/// Of integer_conv2d and quantized_conv2d; nullopt, with the reason, where image or result do not lie so. With
/// `takes_plain` the image may be plain.
std::optional<IntegerImages> read_integer_images(const NodeSignature& node, std::string& why_not,
                                                 bool takes_plain = false);

/// Depthwise convolutions, a second candidate of the op.
void add_integer_depthwise(KernelTable& table, const std::string& op, Isa isa);

}  // namespace weft::native
