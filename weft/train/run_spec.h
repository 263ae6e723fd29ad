// What a training run is, as data: model, data, optimiser, schedule, machine, seed. Everything else follows from it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "weft/models/model.h"

namespace weft::train {

struct ModelSpec {
  std::string name;
  models::ModelOptions options;  // checked by the model itself
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

struct OptimizerSpec {
  std::string name = "sgd";  // sgd | adamw
  double learning_rate = 0;  // 0: the optimiser's own default, filled in by resolve()
  double weight_decay = -1;  // negative: the optimiser's own default
  double momentum = 0.9;     // sgd
  bool nesterov = false;     // sgd
  double beta1 = 0.9;        // adamw
  double beta2 = 0.999;      // adamw
  double epsilon = 1e-8;     // adamw
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

struct ScheduleSpec {
  std::string name = "cosine";       // constant | cosine | one_cycle
  double warmup_epochs = 0;          // linear rise before constant or cosine
  double rise = 0.3;                 // one_cycle: fraction of all steps that the rate rises
  std::string annealing = "cosine";  // one_cycle: cosine | linear
  double start_divisor = 25;         // one_cycle: first rate = peak / start_divisor
  double end_divisor = 1e4;          // one_cycle: last rate = first rate / end_divisor
  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

struct LossSpec {
  double label_smoothing = 0;
  friend bool operator==(const LossSpec&, const LossSpec&) = default;
};

struct AugmentSpec {
  bool normalise = true;         // training and evaluation: subtract the mean, divide by the deviation, per channel
  int64_t crop_padding = 0;      // training: random crop after padding by so many pixels
  std::string padding = "zero";  // zero | reflect
  std::string flip = "none";     // training: none | random | alternating (every other epoch)
  friend bool operator==(const AugmentSpec&, const AugmentSpec&) = default;
};

struct CheckpointSpec {
  int64_t every_epochs = 1;  // 0: not by epochs
  int64_t every_steps = 0;   // 0: not by steps
  double every_seconds = 0;  // 0: not by time
  int64_t keep = 2;          // newest ones to keep; the best is kept beside them
  friend bool operator==(const CheckpointSpec&, const CheckpointSpec&) = default;
};

struct EvaluationSpec {
  int64_t every_epochs = 1;  // 0: after the last epoch only
  int64_t batch = 0;         // 0: as in training
  friend bool operator==(const EvaluationSpec&, const EvaluationSpec&) = default;
};

struct RunSpec {
  ModelSpec model;
  std::string data = "fashion-mnist";
  std::string init;  // safetensors file of the weights to start from; empty: the seed draws them
  int64_t epochs = 5;
  int64_t batch = 128;
  int64_t seed = 1;
  int64_t threads = 0;  // 0: all cores this process may use
  std::string precision = "f32";
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  LossSpec loss;
  AugmentSpec augment;
  CheckpointSpec checkpoint;
  EvaluationSpec evaluation;
  friend bool operator==(const RunSpec&, const RunSpec&) = default;
};

/// One setting of a RunSpec by its recipe key; the table of them serves reading, printing, --set and the messages.
struct Field {
  std::string key;  // "optimizer.learning_rate"
  std::variant<std::string*, int64_t*, double*, bool*> target;
  double low = 0, high = 0;          // numbers: the allowed range, both ends included
  std::vector<std::string> choices;  // texts: the allowed values; empty: any
  std::string help;
};

/// All fields of `spec` but the model's options, in the order of the recipe.
std::vector<Field> fields_of(RunSpec& spec);

using FieldValue = std::variant<std::string, int64_t, double, bool>;

/// Sets one key; "model.KEY" beyond model.name are the model's options. `where` begins each message: "recipe.toml:4".
/// Error(usage) for an unknown key (with the nearest one), a wrong kind or a value out of range.
void set_field(RunSpec& spec, const std::string& key, const FieldValue& value, const std::string& where);

/// "optimizer.learning_rate=0.2", as --set gives it.
void set_from_text(RunSpec& spec, const std::string& assignment);

/// Fills in what depends on other fields or the machine and checks that the fields fit together. Error(usage).
void resolve(RunSpec& spec);

/// For another use of a trained model: so many threads, or, for 0, as many as in training but no more than there are
/// cores here.
void choose_threads(RunSpec& spec, int64_t threads);

/// Cores this process may use.
int64_t available_cores();

}  // namespace weft::train
