#include "weft/train/evaluate.h"

#include <chrono>

namespace weft::train {

Evaluation evaluate(StepCache& steps, State& state, data::Loader& loader, const std::function<bool()>& stop_requested) {
  const auto begin = std::chrono::steady_clock::now();
  Evaluation result;
  double loss_sum = 0, correct = 0;
  int64_t bound = -1;
  loader.start(0, 0, 1);
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    if (stop_requested && stop_requested()) {
      result.finished = false;
      return result;
    }
    const data::Batch& batch = loader.next();
    Executor& executor = steps.executor(batch.count);
    if (bound != batch.count) executor.bind_state(state);
    bound = batch.count;
    executor.bind_batch("image", batch.images.data());
    executor.bind_batch("labels", batch.labels.data());
    executor.run();
    loss_sum += static_cast<double>(executor.scalar_output("loss_sum"));
    correct += static_cast<double>(executor.scalar_output("correct"));
    result.samples += batch.count;
  }
  result.loss = loss_sum / static_cast<double>(result.samples);
  result.accuracy = correct / static_cast<double>(result.samples);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace weft::train
