// The specification of a training run as data: model, data, optimiser, schedule, machine, seed. All else follows from
// it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/library/entries.h"
#include "weft/models/model.h"

namespace weft::spec {

struct ModelSpec {
  std::string name;
  models::ModelOptions options = {};  // checked by the model itself
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Parameters with training settings of their own.
struct ParameterGroup {
  std::string match;                // a glob over parameter names, or "regex:" and an ECMAScript expression
  double learning_rate_factor = 1;  // 0: these parameters stay as they are
  double weight_decay = -1;         // negative: as without the group; otherwise it applies to bias and norm too
  std::string schedule = {};        // a name as in ScheduleSpec, with its other settings; empty: the run's own
  double epochs = 0;                // trained only in the first epochs, so many; 0: in all
  bool has_own_rate() const { return !schedule.empty() || epochs > 0; }
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

/// A momentum that changes over the run.
struct MomentumScheduleSpec {
  std::string name = "constant";   // constant | one_cycle | piecewise
  double low = 0.85, high = 0.95;  // one_cycle: at the peak of the rate, at both ends; rise, annealing: ScheduleSpec's
  std::vector<double> boundaries = {};  // piecewise: epochs, rising
  std::vector<double> momenta = {};     // piecewise: one more than boundaries; with lines: as many
  bool lines = false;                   // piecewise: straight lines between (boundary, momentum) points
  bool changes() const { return name != "constant"; }
  friend bool operator==(const MomentumScheduleSpec&, const MomentumScheduleSpec&) = default;
};

struct OptimizerSpec {
  std::string name = "sgd";                   // an entry of the library
  double learning_rate = 0;                   // 0: the optimiser's own default, filled in by resolve()
  double weight_decay = -1;                   // negative: the optimiser's own default
  double momentum = -1;                       // sgd, lars, muon, rmsprop; negative: the optimiser's own default
  bool nesterov = false;                      // sgd
  double beta1 = 0.9;                         // adam, adamw, lamb, muon's adamw
  double beta2 = 0.999;                       // the same
  double epsilon = 1e-8;                      // the same and rmsprop
  double smoothing = 0.99;                    // rmsprop: share of the mean of squares kept
  bool centered = false;                      // rmsprop
  double trust_coefficient = 0.001;           // lars
  double adamw_learning_rate_factor = 0.015;  // muon: rate of what AdamW updates, over learning_rate
  std::string freeze = {};                    // "layer1.*, conv1.*": globs of parameters that are not trained
  std::map<std::string, ParameterGroup> groups;
  MomentumScheduleSpec momentum_schedule = {};  // replaces `momentum` where it changes
  OwnKeys own = {};                             // keys of entries that have no member above
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

struct ScheduleSpec {
  std::string name = "cosine";          // an entry of the library
  double warmup_epochs = 0;             // linear rise at the beginning; not with one_cycle
  int64_t warmup_steps = 0;             // the same, counted in steps; one of the two
  double rise = 0.3;                    // one_cycle: fraction of all steps that the rate rises
  std::string annealing = "cosine";     // one_cycle: cosine | linear
  double start_divisor = 25;            // one_cycle: first rate = peak / start_divisor
  double end_divisor = 1e4;             // one_cycle: last rate = first rate / end_divisor
  double every_epochs = 0;              // step, exponential: epochs per factor; 0: a third of the run
  double factor = 0.1;                  // step, exponential, plateau; piecewise without factors
  std::vector<double> boundaries = {};  // piecewise: epochs, rising
  std::vector<double> factors = {};     // piecewise: of the rate, one more than boundaries; with lines: as many
  bool lines = false;                   // piecewise: straight lines between (boundary, factor) points
  double power = 1;                     // polynomial
  double end_factor = 0;                // polynomial, plateau: lowest rate / peak
  double periods = 0.5;                 // linear_cosine
  double alpha = 0;                     // linear_cosine
  double beta = 0.001;                  // linear_cosine
  std::string monitor = "auto";         // plateau: a metric of epochs (monitor.h); auto: validation_loss or train_loss
  int64_t patience = 10;                // plateau: epochs without improvement before a reduction
  double threshold = 1e-4;              // plateau: relative improvement that counts
  int64_t cooldown = 0;                 // plateau: epochs after a reduction that do not count
  OwnKeys own = {};                     // keys of entries that have no member above
  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

/// Batch sizes that change between epochs.
struct BatchScheduleSpec {
  std::vector<double> boundaries = {};  // whole epochs, rising; negative: counted from the end of the run
  std::vector<double> batches = {};     // before, between and after the boundaries; empty: RunSpec::batch throughout
  std::vector<double> accumulate = {};  // like batches; empty: RunSpec::accumulate throughout
  // none | linear | square_root: how the learning rate follows the samples of a step, relative to batch * accumulate of
  // the RunSpec
  std::string rate_scaling = "none";
  friend bool operator==(const BatchScheduleSpec&, const BatchScheduleSpec&) = default;
};

/// Sizes of training images that change between epochs.
struct ImageScheduleSpec {
  std::vector<double> boundaries = {};  // as in BatchScheduleSpec
  std::vector<double> sizes = {};       // heights in pixels, width in proportion; empty: as in the data
  friend bool operator==(const ImageScheduleSpec&, const ImageScheduleSpec&) = default;
};

struct ClipSpec {
  double norm = 0;   // of all gradients together; 0: no bound
  double value = 0;  // of each element; 0: no bound
  friend bool operator==(const ClipSpec&, const ClipSpec&) = default;
};

/// What steps record besides loss and learning rate, and evaluations besides the loss.
struct MetricsSpec {
  bool gradient_norm = false;  // of all gradients together; always where clip.norm bounds it or noise_every asks
  int64_t noise_every = 0;     // steps from one measurement of the gradient noise to the next; 0: none
  std::string names = "auto";  // of evaluations: "auto, top_3"; auto: those of the task; others are entries of the
                               // library
  OwnKeys own = {};            // keys of entries
  friend bool operator==(const MetricsSpec&, const MetricsSpec&) = default;
};

/// An exponential moving average of the weights, which evaluation and checkpoints then use.
struct EmaSpec {
  double decay = 0;    // 0: no average
  bool warmup = true;  // the decay rises as (1 + step) / (10 + step) towards its value
  friend bool operator==(const EmaSpec&, const EmaSpec&) = default;
};

struct LookaheadSpec {
  int64_t steps = 0;      // between synchronisations; 0: none
  double alpha = 0.5;     // share of the way that the slow weights go, at the start of the run
  double end_alpha = -1;  // the same at its end; negative: alpha throughout
  double power = 1;       // exponent of the progress of the run, for values in between
  friend bool operator==(const LookaheadSpec&, const LookaheadSpec&) = default;
};

/// How ranks compress the gradients that they exchange (compression.h).
struct CompressionSpec {
  std::string method = "none";   // none | auto | bf16 | f16 | powersgd | top_k | one_bit
  std::string tensors = "paid";  // paid: where it should save time | all: wherever possible
  int64_t rank = 4;              // powersgd: columns of the products
  double share = 0.01;           // top_k: of the elements
  friend bool operator==(const CompressionSpec&, const CompressionSpec&) = default;
};

/// Ranks train on their own for some steps and then continue with the mean of their weights (local_steps.h).
struct AveragingSpec {
  int64_t period = 0;             // steps from one mean to the next; 0: the gradients of each step are averaged
  bool adaptive = false;          // period is the first one, and it shrinks as the loss does
  double slow_momentum = 0;       // momentum of the step from one mean to the next
  double slow_learning_rate = 1;  // factor of that step
  int64_t states_every = 1;       // means from one that covers all states to the next; others cover the weights alone
  friend bool operator==(const AveragingSpec&, const AveragingSpec&) = default;
};

/// How the ranks are arranged (graph/sharding.h).
struct MeshSpec {
  int64_t data = 0;      // ranks along the axis data, each of which has a part of every batch; 0: all that are left
  int64_t tensor = 1;    // ranks along the axis tensor, which share the layers and read the same batch
  int64_t pipeline = 1;  // ranks along the axis pipeline, each of which has some layers (step/pipeline_step.h)
  friend bool operator==(const MeshSpec&, const MeshSpec&) = default;
};

/// What the ranks share among themselves instead of each keeping it all.
struct ShardSpec {
  // Along the axis data (step/sharded_states.h). 0: nothing, 1: states of the optimiser, 2: also sums of gradients, 3:
  // also weights
  int64_t zero = 0;
  // Along the axis tensor (step/tensor_parallel.h): "*.qkv.weight=outputs, *.proj.weight=inputs", or auto
  std::string tensor = "auto";
  // Whether those ranks also divide norms, dropout and sums between split layers, by rows of tokens
  bool sequence = false;
  // whole: each rank along the axis data has all experts of a layer; data: those ranks divide them (step/experts.h)
  std::string experts = "whole";
  friend bool operator==(const ShardSpec&, const ShardSpec&) = default;
};

/// How the ranks along the axis pipeline take turns (passes/ranks/pipeline_schedule.h).
struct PipelineSpec {
  std::string schedule = "1f1b";
  int64_t micro_batches = 4;  // into which each rank's part of a batch is divided
  int64_t chunks = 2;         // of layers per rank, with the schedule interleaved
  friend bool operator==(const PipelineSpec&, const PipelineSpec&) = default;
};

/// Batches are cut into equal grains, of which ranks take as many as their speed allows (step/grains.h).
struct BalanceSpec {
  int64_t grains = 0;    // of each batch; 0: every rank computes an equal part at once
  bool by_speed = true;  // ranks that stay slow take fewer of them; else all take as many
  friend bool operator==(const BalanceSpec&, const BalanceSpec&) = default;
};

struct LossSpec {
  std::string name = "auto";   // an entry of the library, or auto: chosen by the model and the labels
  double label_smoothing = 0;  // share of the target spread over all classes
  OwnKeys own = {};            // keys of entries that have no member above
  friend bool operator==(const LossSpec&, const LossSpec&) = default;
};

/// Loss scaling: the loss is multiplied by a scale before differentiation, so that small gradients do not vanish in a
/// narrow type (loss_scaling.h).
struct LossScalingSpec {
  std::string mode = "auto";    // auto (dynamic in f16, else none) | none | dynamic | fixed
  double scale = 65536;         // at the start; this and the defaults below are PyTorch's
  double growth_factor = 2;     // of the scale, after growth_interval steps without an overflow
  double backoff_factor = 0.5;  // of the scale, after an overflow
  int64_t growth_interval = 2000;
  int64_t patience = 25;  // overflows in a row that are allowed
  friend bool operator==(const LossScalingSpec&, const LossScalingSpec&) = default;
};

struct AugmentSpec {
  bool normalise = true;          // training and evaluation: subtract the mean, divide by the deviation, per channel
  std::vector<double> mean = {};  // of each channel, of pixels in [0, 1], to normalise with; empty: the data's own
  std::vector<double> deviation = {};  // likewise
  int64_t crop_padding = 0;            // training: random crop after padding by so many pixels
  std::string padding = "zero";        // zero | reflect
  std::string flip = "none";           // training: none | random | alternating (every other epoch)
  double resized_crop = 0;             // training, as all below: smallest share of the picture in a crop; 0: off
  double rotate = 0;                   // degrees, either way
  double brightness = 0, contrast = 0, saturation = 0;  // factors from 1 - this to 1 + this
  double hue = 0;                                       // turns of the colour circle, either way
  int64_t cutout = 0;                                   // side in pixels; 0: off
  double erasing = 0;                                   // probability
  double mixup = 0, cutmix = 0;                         // alpha of the Beta distribution; 0: off
  OwnKeys own = {};                                     // keys of entries that have no member above
  friend bool operator==(const AugmentSpec&, const AugmentSpec&) = default;
};

struct LoaderSpec {
  int64_t workers = 0;   // threads that make batches; 0: as many as the steps need, measured
  int64_t prefetch = 0;  // batches made ahead; 0: two, more of small batches
  friend bool operator==(const LoaderSpec&, const LoaderSpec&) = default;
};

struct CheckpointSpec {
  int64_t every_epochs = 1;  // 0: not by epochs
  int64_t every_steps = 0;   // 0: not by steps
  double every_seconds = 0;  // 0: not by time
  int64_t keep = 2;          // newest ones to keep; the best is kept besides
  friend bool operator==(const CheckpointSpec&, const CheckpointSpec&) = default;
};

struct EvaluationSpec {
  int64_t every_epochs = 1;        // 0: after the last epoch only
  int64_t every_steps = 0;         // of the validation part, within epochs too; 0: not by steps
  std::string test_data = "auto";  // auto | at_end | each_time: auto is at_end where there is a validation part
  int64_t batch = 0;               // 0: as in training
  std::string tta = "none";        // test-time augmentation: none | flip | multicrop (test_time_views.h)
  std::string weights = "auto";    // of ranks that keep parts: auto | once | by_layer (sharded_states.h)
  friend bool operator==(const EvaluationSpec&, const EvaluationSpec&) = default;
};

/// When a run ends before its last epoch, beside RunSpec::max_steps and max_time.
struct StopSpec {
  std::string monitor = "auto";  // a metric of epochs (monitor.h); auto: validation_loss
  int64_t patience = 0;          // evaluations without improvement; 0: the run does not end for that
  double least_change = 0;       // absolute, of what counts as an improvement
  std::string target = {};       // "0.95": the run ends where the metric reaches it; empty: none
  friend bool operator==(const StopSpec&, const StopSpec&) = default;
};

/// Keys that a recipe leaves to measurements before the first step, as `auto` (run/policies/choose_policies.h). Until
/// then their members hold what the run would have without the key.
struct MeasuredKeys {
  bool learning_rate = false;
  bool batch = false;
  bool warmup_steps = false;
  bool any() const { return learning_rate || needs_noise(); }
  bool needs_noise() const { return batch || warmup_steps; }  // of the gradient
  friend bool operator==(const MeasuredKeys&, const MeasuredKeys&) = default;
};

struct RunSpec {
  ModelSpec model;
  std::string data = "fashion-mnist";
  std::string validation = "0";  // the share of the training data that is set aside for validation, or data of its own
  int64_t validation_seed = 0;   // which samples are set aside
  std::string init;              // safetensors file of the weights to start from; empty: the seed draws them
  std::string init_head = "auto";  // of its last layer: auto (taken where the classes are as many) | fresh
  bool init_partial = false;       // the file need not hold all tensors of the model, and may hold others
  double epochs = 5;               // may end with part of an epoch
  int64_t max_steps = 0;           // the run ends after so many steps, within an epoch too; 0: after its epochs
  std::string max_time;            // "90m": the run ends after so much training time; empty: no limit
  int64_t batch = 128;
  int64_t accumulate = 1;               // batches per update of the weights
  int64_t virtual_ranks = 0;            // shards per batch, the same on any number of ranks; 0: one per rank
  std::string batch_norm = "per_rank";  // statistics of a batch: per_rank | synchronised
  std::string memory_limit;             // "1.5GB" for all that is planned; empty: the machine's memory
  std::string offload;                  // directory of the offload file, used where the limit is too small; empty: none
  std::string offload_rate = "1GB";     // of that file per second and direction, assumed in predictions
  std::string cluster;  // file of `weft cluster probe`, for plans of several ranks; empty: defaults, or measured
  std::string cost_profile = "default";  // rates for plans: default | measured | a file
  std::string strategy = "manual";       // manual | auto: weft chooses how ranks divide the work, and what each keeps
  bool late_multiply = true;             // several ranks may gather layer rows instead of reducing gradients
  int64_t seed = 1;
  int64_t threads = 0;  // 0: all cores this process may use
  std::string precision = "f32";
  std::string precision_of;  // exceptions per op or node: "softmax=f32, head*=f32"
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  BatchScheduleSpec batch_schedule;
  ImageScheduleSpec image_schedule;
  ClipSpec clip;
  MetricsSpec metrics;
  EmaSpec ema;
  LookaheadSpec lookahead;
  CompressionSpec compression;
  AveragingSpec averaging;
  MeshSpec mesh;
  ShardSpec shard;
  PipelineSpec pipeline;
  BalanceSpec balance;
  LossSpec loss;
  LossScalingSpec loss_scaling;
  AugmentSpec augment;
  LoaderSpec loader;
  CheckpointSpec checkpoint;
  EvaluationSpec evaluation;
  StopSpec stop;
  MeasuredKeys measured;
  friend bool operator==(const RunSpec&, const RunSpec&) = default;
};

/// Number of epochs that begin.
int64_t begun_epochs(const RunSpec& spec);
/// Steps of a run with `steps_per_epoch` steps per epoch, rounded up.
int64_t total_steps(const RunSpec& spec, int64_t steps_per_epoch);

/// The share of the training data that RunSpec::validation sets aside; nullopt where it names data of its own.
std::optional<double> validation_share(const RunSpec& spec);
/// Whether there is anything to validate on.
bool has_validation(const RunSpec& spec);
/// RunSpec::max_time in seconds; nullopt where there is no limit.
std::optional<double> max_seconds(const RunSpec& spec);

/// Whether the loss is scaled: as the recipe says, or, where it leaves it open, in f16.
bool scales_loss(const RunSpec& spec);

/// Whether batches are mixed, so that targets are class shares.
inline bool mixes(const AugmentSpec& augment) { return augment.mixup > 0 || augment.cutmix > 0; }

// The entries decide which names and keys there are. A Library is a set of entries. Where something was added to it,
// pass it.

/// Sets one key. "model.KEY" other than model.name sets an option of the model; "optimizer.groups.NAME.KEY" makes the
/// group if needed. Messages begin with `where`: "recipe.toml:4". Error(usage) for an unknown key (with the nearest
/// one), a wrong kind or a value out of range.
void set_field(RunSpec& spec, const std::string& name, const KeyValue& value, const std::string& where,
               const Entries& entries = standard_entries());

/// For a table such as "[optimizer]" without keys in a recipe. Error(usage) where no key belongs to this section. Makes
/// a parameter group, as set_field() does.
void require_section(RunSpec& spec, const std::string& section, const std::string& where,
                     const Entries& entries = standard_entries());

/// Sets a key from the text of --set: "optimizer.learning_rate=0.2".
void set_from_text(RunSpec& spec, const std::string& assignment, const Entries& entries = standard_entries());

/// Fills in what depends on other fields or the machine, and checks that the fields fit together. Error(usage).
void resolve(RunSpec& spec, const Entries& entries = standard_entries());

/// Settings that differ from their default but have no effect, with the reason: "optimizer.momentum = 0.5 with
/// optimizer.name = 'adamw'".
std::vector<std::string> keys_without_effect(const RunSpec& spec, data::TargetKind targets,
                                             const Entries& entries = standard_entries());

/// Sets the threads for another use of a trained model: `threads`, or, for 0, those of training but at most the cores
/// here.
void choose_threads(RunSpec& spec, int64_t threads);

}  // namespace weft::spec
