// The library that users begin with: everything that comes with weft. It is made here, above all its parts. This is the
// one place that knows which device there is.
#include "weft/cpu/cpu_device.h"
#include "weft/data/open_dataset.h"
#include "weft/library/library.h"
#include "weft/models/model.h"
#include "weft/onnx/train/onnx_model.h"
#include "weft/ops/all.h"
#include "weft/step/augmentations/entries.h"
#include "weft/step/losses/entries.h"
#include "weft/step/metrics/entries.h"
#include "weft/step/optimizers/entries.h"
#include "weft/step/schedules/entries.h"
#include "weft/tasks/entries.h"

namespace weft {

const Entries& standard_entries() {
  static const Entries entries{step::all_optimizers(), step::all_schedules(),     step::all_losses(),
                               step::all_metrics(),    step::all_augmentations(), tasks::all_tasks()};
  return entries;
}

Library standard_library() {
  Library library{standard_entries(),   ops::make_registry(),           standard_kernels(),
                  models::all_models(), data::standard_dataset_kinds(), cpu_device()};
  // What constants of an imported model decide is computed with the standard kernels.
  const std::shared_ptr<const Device> device = library.device.make({.threads = 1, .kernels = library.kernels});
  library.models.push_back(
      onnx::onnx_model_entry([device](const NodeSignature& node, const std::vector<Tensor>& operands) {
        return device->evaluate(node, operands);
      }));
  return library;
}

}  // namespace weft
