#include "weft/spec/usual_names.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

namespace weft::spec {

namespace {

struct UsualName {
  std::string_view name, key;
};

/// As PyTorch, Lightning, timm, Keras and scikit-learn spell them.
constexpr UsualName kUsualNames[] = {
    {"lr", "optimizer.learning_rate"},
    {"wd", "optimizer.weight_decay"},
    {"bs", "batch"},
    {"batch_size", "batch"},
    {"batchsize", "batch"},
    {"num_epochs", "epochs"},
    {"max_epochs", "epochs"},
    {"n_epochs", "epochs"},
    {"opt", "optimizer.name"},
    {"optim", "optimizer.name"},
    {"optimizer", "optimizer.name"},
    {"sched", "schedule.name"},
    {"scheduler", "schedule.name"},
    {"lr_scheduler", "schedule.name"},
    {"schedule", "schedule.name"},
    {"warmup", "schedule.warmup_epochs"},
    {"arch", "model.name"},
    {"dataset", "data"},
    {"val_split", "validation"},
    {"validation_split", "validation"},
    {"validation_fraction", "validation"},
    {"early_stopping", "stop.patience"},
    {"early_stopping_patience", "stop.patience"},
    {"smoothing", "loss.label_smoothing"},
    {"label_smooth", "loss.label_smoothing"},
    {"clip_grad", "clip.norm"},
    {"grad_clip", "clip.norm"},
    {"gradient_clip_val", "clip.norm"},
    {"max_grad_norm", "clip.norm"},
    {"accumulate_grad_batches", "accumulate"},
    {"gradient_accumulation_steps", "accumulate"},
    {"grad_accum_steps", "accumulate"},
    {"amp", "precision"},
    {"fp16", "precision"},
    {"dtype", "precision"},
    {"num_workers", "loader.workers"},
    {"workers", "loader.workers"},
    {"random_state", "seed"},
    {"pretrained", "init"},
    {"weights", "init"},
    {"ema", "ema.decay"},
    {"model_ema", "ema.decay"},
    {"hflip", "augment.flip"},
};

std::string in_small_letters(const std::string& name) {
  std::string small;
  for (const char c : name) small += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

}  // namespace

std::string key_of_usual_name(const std::string& name, const std::vector<std::string>& keys) {
  const std::string small = in_small_letters(name);
  const auto* const usual = std::find_if(std::begin(kUsualNames), std::end(kUsualNames),
                                         [&](const UsualName& one) { return one.name == small; });
  if (usual != std::end(kUsualNames)) return std::string(usual->key);
  std::vector<std::string> found;
  for (const std::string& key : keys)
    if (key.ends_with("." + small)) found.push_back(key);
  return found.size() == 1 ? found.front() : "";
}

}  // namespace weft::spec
