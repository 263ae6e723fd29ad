#include "weft/train/step_result.h"

#include <fmt/format.h>

#include <cmath>

#include "weft/base/error.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::train {

void StepResult::add(const Executor& executor, int64_t parts, bool has_classes) {
  loss += static_cast<double>(executor.scalar_output("loss")) / static_cast<double>(parts);
  if (has_classes) correct += static_cast<double>(executor.scalar_output("correct"));
}

void StepResult::add(const step::LossScale& scale, int64_t skipped_before) {
  is_skipped = scale.skipped() > skipped_before;
  loss_scale = scale.scale();
  skipped_steps = scale.skipped();
}

void refuse_gradients(const step::LossScale& scale, const step::Position& position, double learning_rate,
                      const std::string& where) {
  throw comm::SharedError(
      ErrorKind::numeric,
      fmt::format("the gradients were not finite in {} steps in a row, the last one step {}{} (epoch {}, "
                  "learning rate {:.3g}), "
                  "down to a loss scale of {:g}; lower the rate with --set "
                  "optimizer.learning_rate=..., rise slowly with --set "
                  "schedule.warmup_epochs=1, or compute in a wider type with --precision",
                  scale.skipped_in_a_row(), position.step + 1, where, position.epoch + 1, learning_rate,
                  scale.scale()));
}

void refuse_loss(const step::StepMetrics& metrics, const std::string& where) {
  throw comm::SharedError(
      ErrorKind::numeric,
      fmt::format("the loss became {}{} at step {} (epoch {}, learning rate {:.3g}); lower it with --set "
                  "optimizer.learning_rate=..., or rise slowly with --set schedule.warmup_epochs=1",
                  std::isnan(metrics.loss) ? "NaN" : "infinite", where, metrics.step + 1, metrics.epoch + 1,
                  metrics.learning_rate));
}

}  // namespace weft::train
