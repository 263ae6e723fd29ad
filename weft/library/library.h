// What can be named when something is trained: ops with their kernels, models, kinds of data, and the entries of
// recipes and data (entries.h): optimisers, schedules, losses, metrics, augmentations, tasks. A plain value: make the
// standard one, add your own to it, pass it to whatever looks names up.
#pragma once

#include <string>
#include <vector>

#include "weft/data/open_dataset.h"
#include "weft/device/device_kind.h"
#include "weft/device/function_kernel.h"
#include "weft/graph/op_def.h"
#include "weft/library/entries.h"
#include "weft/models/model.h"

namespace weft {

struct Library : Entries {
  OpRegistry ops;  // graphs point into it: keep the library where it is while there are any
  KernelTable kernels;
  std::vector<models::ModelEntry> models;
  std::vector<data::DatasetKind> data;
  DeviceKind device;  // on which all of it computes

  /// An op with its reference kernel: plain loops over row-major f32 (and integer) operands. Faster ones are added with
  /// kernels.add_first(). Error(usage) where something is missing or there is an op of that name.
  void add_op(OpDef op, PrepareKernel reference);
  /// Error(usage) where something is missing or there is a model of that name.
  void add_model(models::ModelEntry model);
  /// Error(usage) where something is missing or there is a kind of that name.
  void add_data(data::DatasetKind kind);
};

/// Everything that comes with weft, on the CPU. Made of what stands above this folder (weft/standard).
Library standard_library();

/// Error(usage) with the nearest name for an unknown model or option; Error(shape) where the input does not fit.
models::Model build_model(const Library& library, const std::string& name, const models::ModelInput& input,
                          const models::ModelOptions& options, models::Mode mode);

}  // namespace weft
