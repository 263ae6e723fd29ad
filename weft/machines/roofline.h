// How long work takes on a device that is not here: the larger of its arithmetic and its memory traffic, each at the
// rate of the device file times an efficiency that rises with size (Williams, Waterman and Patterson 2009, "Roofline").
#pragma once

#include <memory>
#include <string>

#include "weft/device/cost_model.h"
#include "weft/machines/device_file.h"

namespace weft::machines {

/// One kernel's work.
struct Work {
  WorkClass kind = WorkClass::memory;
  double flops = 0;
  double bytes = 0;  // read and written, each operand once
  Arithmetic arithmetic = Arithmetic::f32;
  double outputs = 0;        // numbers that sums of products give; 0: not known
  bool is_winograd = false;  // a convolution of 3x3 with stride 1
};

/// What corrects a device file for the software that runs on it, from one calibration run: all seconds of arithmetic,
/// and of memory traffic, times this.
struct Calibration {
  double arithmetic = 1;
  double memory = 1;
};

/// Seconds of one call, launch included. Linear in flops and bytes but for the launch and the half sizes.
double seconds_of(const Work& work, const DeviceFile& device, const Calibration& calibration = {});

/// Whether the op says what it costs: it counts its operations, or by its class it only moves what it reads.
bool states_cost(const OpDef& op);

struct RooflineOptions {
  bool uses_tf32 = false;  // products of f32 in tf32, where the device has it
  Calibration calibration = {};
};

/// Error(usage) naming the op where it states no cost: nothing would say how long it takes. What the node does, by its
/// op's class of work, counts and types. Layout changes count as copies.
Work work_of(const NodeSignature& node, const RooflineOptions& options = {});

/// Times of nodes on the whole device; `threads` is not asked for. Views cost nothing; collectives cost nothing here.
std::shared_ptr<const CostModel> roofline_costs(const DeviceFile& device, const RooflineOptions& options = {});

}  // namespace weft::machines
