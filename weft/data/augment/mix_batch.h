// Mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019): each image of a batch with a share of its neighbour, and so
// its target.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "weft/tensor/tensor.h"

namespace weft::data {

struct MixOptions {
  double mixup = 0;   // alpha of the Beta(alpha, alpha) that the share is drawn from; 0: off
  double cutmix = 0;  // where both are on, a coin decides for each batch
  bool on() const { return mixup > 0 || cutmix > 0; }
};

/// The image before the first of those that are mixed, and its label.
struct MixNeighbour {
  std::span<const float> image;
  int32_t label = 0;
};

/// Mixes `images` of shape (C,H,W), one per label, in place, each with the one before it (the first with `before`,
/// where that is given, else with the last), and writes the shares of the classes to `targets` (N,classes). A pure
/// function of seed, epoch and step: consecutive pieces of a batch, each with the image before it, become what the
/// batch becomes.
void mix_batch(std::span<float> images, const Shape& shape, std::span<const int32_t> labels,
               const std::optional<MixNeighbour>& before, const MixOptions& options, uint64_t seed, int64_t epoch,
               int64_t step, std::span<float> targets);

}  // namespace weft::data
