// What came of the batches of one step, and the errors that end a run by its numbers.
#pragma once

#include <optional>
#include <string>

#include "weft/runtime/executor.h"
#include "weft/step/metrics.h"
#include "weft/step/optimizers/loss_scaling.h"

namespace weft::train {

struct StepResult {
  double loss = 0, correct = 0, seconds = 0, wait_seconds = 0;
  int64_t samples = 0;
  std::optional<double> gradient_norm = {};
  bool is_skipped = false;  // its gradients were not finite and changed nothing
  std::optional<double> loss_scale = {};
  int64_t skipped_steps = 0;  // in all

  /// Adds the outputs of one of `parts` batches. `has_classes`: there is something to be right about.
  void add(const Executor& executor, int64_t parts, bool has_classes);
  /// What the step did to the scale of the loss; `skipped_before`: LossScale::skipped() before it.
  void add(const step::LossScale& scale, int64_t skipped_before);
};

/// Throws Error(numeric) on all ranks, after too many steps in a row whose gradients were not finite. `where`: whose
/// they were.
[[noreturn]] void refuse_gradients(const step::LossScale& scale, const step::Position& position, double learning_rate,
                                   const std::string& where);

/// Throws Error(numeric) on all ranks, for a loss that is no finite number. `where`: whose it was.
[[noreturn]] void refuse_loss(const step::StepMetrics& metrics, const std::string& where);

}  // namespace weft::train
