// Mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019): each image of a batch with a share of its neighbour, and so
// its target.
#pragma once

#include <cstdint>
#include <span>

#include "weft/tensor/tensor.h"

namespace weft::data {

struct MixOptions {
  double mixup = 0;   // alpha of the Beta(alpha, alpha) that the share is drawn from; 0: off
  double cutmix = 0;  // where both are on, a coin decides for each batch
  bool on() const { return mixup > 0 || cutmix > 0; }
};

/// Mixes `images` of shape (C,H,W), one per label, in place, each with the one before it (the first with the last), and
/// writes the shares of the classes to `targets` (N,classes). A pure function of seed, epoch and step.
void mix_batch(std::span<float> images, const Shape& shape, std::span<const int32_t> labels, const MixOptions& options,
               uint64_t seed, int64_t epoch, int64_t step, std::span<float> targets);

}  // namespace weft::data
