// `precision = auto`: where the machine has several precisions, times a step of the network itself in each.
#pragma once

#include <optional>
#include <string>

#include "weft/device/device.h"
#include "weft/library/library.h"
#include "weft/spec/run_spec.h"

namespace weft::program {

struct PrecisionTimes {
  double f32_seconds = 0, bf16_seconds = 0;  // of one training step, the best of some
};

/// bf16 where it takes less than 95 % of the time of f32, else f32.
std::string faster_precision(const PrecisionTimes& times);

/// Where the spec's precision is auto: sets it to one that the machine has. Measures, on batches like `input`, where
/// the machine has more than f32, and returns the times. Takes a second or two besides compiling both steps.
std::optional<PrecisionTimes> choose_automatic_precision(const Library& library, spec::RunSpec& spec,
                                                         const models::ModelInput& input, const Device& device);

/// "precision auto: a step takes 12.3 ms in f32, 4.5 ms in bf16: computing in bf16"
std::string describe(const PrecisionTimes& times);

}  // namespace weft::program
