#include "weft/spec/run_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/data/augment/views.h"
#include "weft/spec/optimizer_defaults.h"

namespace weft::spec {

namespace {

constexpr double kTiny = 1e-30;  // smallest accepted value of what must be above zero

std::string shown(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("'{}'", *text);
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return fmt::format("[{}]", fmt::join(*list, ", "));
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return std::get<bool>(value) ? "true" : "false";
}

std::string_view wanted_kind(const Field& field) {
  constexpr std::string_view kinds[] = {"a text", "a whole number", "a number", "true or false",
                                        "a list of numbers, such as [1, 0.1]"};
  return kinds[field.target.index()];
}

[[noreturn]] void fail_kind(const Field& field, const FieldValue& value, const std::string& where) {
  fail(ErrorKind::usage, "{}: {} wants {}, got {}", where, field.key, wanted_kind(field), shown(value));
}

void require_range(const Field& field, double value, const std::string& where) {
  if (value >= field.low && value <= field.high) return;  // false for NaN
  if (field.low == kTiny)
    fail(ErrorKind::usage, "{}: {} = {} is out of range: above 0, at most {}", where, field.key, value, field.high);
  fail(ErrorKind::usage, "{}: {} = {} is out of range: {} to {}", where, field.key, value, field.low, field.high);
}

void assign(const Field& field, const FieldValue& value, const std::string& where) {
  if (auto* const* text = std::get_if<std::string*>(&field.target)) {
    const auto* given = std::get_if<std::string>(&value);
    if (given == nullptr) fail_kind(field, value, where);
    const auto& choices = field.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), *given) == choices.end())
      fail(ErrorKind::usage, "{}: {} = '{}' is not known; choose one of: {}", where, field.key, *given,
           fmt::join(choices, ", "));
    **text = *given;
  } else if (auto* const* flag = std::get_if<bool*>(&field.target)) {
    const auto* given = std::get_if<bool>(&value);
    if (given == nullptr) fail_kind(field, value, where);
    **flag = *given;
  } else if (auto* const* integer = std::get_if<int64_t*>(&field.target)) {
    const auto* given = std::get_if<int64_t>(&value);
    if (given == nullptr) fail_kind(field, value, where);
    require_range(field, static_cast<double>(*given), where);
    **integer = *given;
  } else if (auto* const* list = std::get_if<std::vector<double>*>(&field.target)) {
    const auto* given = std::get_if<std::vector<double>>(&value);
    if (given == nullptr) fail_kind(field, value, where);
    for (const double element : *given) require_range(field, element, where);
    **list = *given;
  } else {
    double given = 0;
    if (const auto* real = std::get_if<double>(&value)) {
      given = *real;
    } else if (const auto* whole = std::get_if<int64_t>(&value)) {
      given = static_cast<double>(*whole);
    } else {
      fail_kind(field, value, where);
    }
    require_range(field, given, where);
    *std::get<double*>(field.target) = given;
  }
}

template <typename Number>
bool parse_number(const std::string& text, Number& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

/// "[1, 0.1]" or "1,0.1"
bool parse_list(std::string text, std::vector<double>& list) {
  std::erase(text, ' ');
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (!parse_number(text.substr(begin, end - begin), list.emplace_back())) return false;
    begin = end + 1;
  }
  return true;
}

FieldValue value_of_kind(const Field& field, const std::string& text) {
  int64_t integer = 0;
  double real = 0;
  if (std::holds_alternative<std::string*>(field.target)) return text;
  if (std::holds_alternative<bool*>(field.target) && (text == "true" || text == "false")) return text == "true";
  if (std::holds_alternative<int64_t*>(field.target) && parse_number(text, integer)) return integer;
  if (std::holds_alternative<double*>(field.target) && parse_number(text, real)) return real;
  std::vector<double> list;
  if (std::holds_alternative<std::vector<double>*>(field.target) && parse_list(text, list)) return list;
  return text;  // assign() reports the wrong kind
}

const Field& find_field(const std::vector<Field>& fields, const std::string& key, const std::string& where) {
  std::vector<std::string> keys;
  for (const Field& field : fields) {
    if (field.key == key) return field;
    keys.push_back(field.key);
  }
  fail(ErrorKind::usage, "{}: unknown key '{}'{}", where, key, key_suggestion(key, keys));
}

constexpr std::string_view kGroups = "optimizer.groups.";

/// Makes the group that the key names, so that fields_of() lists its keys.
void make_group(RunSpec& spec, const std::string& key, const std::string& where) {
  if (!key.starts_with(kGroups)) return;
  const size_t point = key.rfind('.');
  const std::string name = point < kGroups.size() ? "" : key.substr(kGroups.size(), point - kGroups.size());
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  if (name.empty() || !std::all_of(name.begin(), name.end(), fits))
    fail(ErrorKind::usage,
         "{}: '{}' names no group of parameters; write optimizer.groups.NAME.KEY with a NAME of letters, digits, _ and "
         "-, such as optimizer.groups.head.match",
         where, key);
  spec.optimizer.groups.try_emplace(name);
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerDefaults& defaults : kOptimizers) names.emplace_back(defaults.name);
  return names;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = {"constant",  "cosine",  "exponential", "linear_cosine", "one_cycle",
                                                 "piecewise", "plateau", "polynomial",  "step"};
  return names;
}

void add_group_fields(std::vector<Field>& fields, std::map<std::string, ParameterGroup>& groups) {
  std::vector<std::string> schedules = {""};  // the run's own
  for (const std::string& name : schedule_names())
    if (name != "plateau") schedules.push_back(name);
  for (auto& [name, group] : groups) {
    const std::string prefix = std::string(kGroups) + name + ".";
    fields.push_back({prefix + "match", &group.match, 0, 0, {}, "parameter names: glob, or regex:EXPRESSION"});
    fields.push_back({prefix + "learning_rate_factor", &group.learning_rate_factor, 0, 1e6, {}, "0: frozen"});
    fields.push_back({prefix + "weight_decay",
                      &group.weight_decay,
                      -1,
                      1e3,
                      {},
                      "bias and norm included; negative: as without the group"});
    fields.push_back({prefix + "schedule", &group.schedule, 0, 0, schedules, "a schedule's name; empty: the run's"});
    fields.push_back({prefix + "epochs", &group.epochs, 0, 1e6, {}, "trained in so many first epochs; 0: in all"});
  }
}

bool is_model_option(const std::string& key) { return key.starts_with("model.") && key != "model.name"; }

}  // namespace

std::vector<Field> fields_of(RunSpec& spec) {
  OptimizerSpec& optimizer = spec.optimizer;
  ScheduleSpec& schedule = spec.schedule;
  AugmentSpec& augment = spec.augment;
  LossScalingSpec& scaling = spec.loss_scaling;
  std::vector<Field> fields = {
      {"model.name", &spec.model.name, 0, 0, {}, "`weft models` lists them; other keys of [model] are its options"},
      {"data", &spec.data, 0, 0, {}, "such as fashion-mnist, cifar10:DIR or csv:FILE; `weft data --help` lists all"},
      {"init", &spec.init, 0, 0, {}, "safetensors file of the weights to start from; empty: the seed draws them"},
      {"epochs", &spec.epochs, kTiny, 1e6, {}, "passes over the training data; 9.9: the last one not to its end"},
      {"batch", &spec.batch, 1, 65536, {}, "samples per step"},
      {"accumulate", &spec.accumulate, 1, 65536, {}, "batches per update of the weights"},
      {"virtual_ranks", &spec.virtual_ranks, 0, 65536, {}, "shards of each batch, on any number of ranks; 0: one each"},
      {"batch_norm",
       &spec.batch_norm,
       0,
       0,
       {"per_rank", "synchronised"},
       "mean and deviation of a batch: per_rank, or synchronised over all ranks"},
      {"memory_limit", &spec.memory_limit, 0, 0, {}, "such as 1.5GB: activations are computed twice to keep to it"},
      {"offload", &spec.offload, 0, 0, {}, "directory on a disk: there lies what recomputation cannot save"},
      {"offload_rate", &spec.offload_rate, 0, 0, {}, "what that disk reads or writes in a second, for predictions"},
      {"cluster",
       &spec.cluster,
       0,
       0,
       {},
       "what `weft cluster probe` wrote; empty: measured where there are several hosts"},
      {"late_multiply",
       &spec.late_multiply,
       0,
       0,
       {},
       "several ranks gather rows of large layers where reducing their gradients costs more"},
      {"seed", &spec.seed, 0, 9e15, {}, "of weights, order and augmentation"},
      {"threads", &spec.threads, 0, 1024, {}, "0: all cores this process may use"},
      {"precision",
       &spec.precision,
       0,
       0,
       {"f32", "bf16", "f16", "auto"},
       "f32, bf16, f16, or auto: of convolutions, matrix products and what follows them"},
      {"precision_of", &spec.precision_of, 0, 0, {}, "exceptions by node or op: 'softmax=f32, head*=f32'"},
      {"optimizer.name", &optimizer.name, 0, 0, optimizer_names(),
       fmt::format("{}", fmt::join(optimizer_names(), ", "))},
      {"optimizer.learning_rate", &optimizer.learning_rate, kTiny, 1e6, {}, "the peak, which the schedule scales"},
      {"optimizer.weight_decay", &optimizer.weight_decay, 0, 1e3, {}, "not applied to bias and norm"},
      {"optimizer.momentum", &optimizer.momentum, 0, 0.9999999, {}, "sgd, lars, muon, rmsprop"},
      {"optimizer.nesterov", &optimizer.nesterov, 0, 0, {}, "sgd; muon always does"},
      {"optimizer.beta1", &optimizer.beta1, 0, 0.9999999, {}, "adam, adamw, lamb, and what muon leaves to adamw"},
      {"optimizer.beta2", &optimizer.beta2, 0, 0.9999999, {}, "the same"},
      {"optimizer.epsilon", &optimizer.epsilon, kTiny, 1, {}, "the same, and rmsprop"},
      {"optimizer.smoothing", &optimizer.smoothing, 0, 0.9999999, {}, "rmsprop: share of the mean of squares kept"},
      {"optimizer.centered", &optimizer.centered, 0, 0, {}, "rmsprop: by the variance of the gradient"},
      {"optimizer.trust_coefficient", &optimizer.trust_coefficient, kTiny, 1e3, {}, "lars"},
      {"optimizer.adamw_learning_rate_factor",
       &optimizer.adamw_learning_rate_factor,
       0,
       1e6,
       {},
       "muon: adamw's rate over learning_rate"},
  };
  add_group_fields(fields, optimizer.groups);
  const std::vector<Field> rest = {
      {"schedule.name", &schedule.name, 0, 0, schedule_names(), fmt::format("{}", fmt::join(schedule_names(), ", "))},
      {"schedule.warmup_epochs", &schedule.warmup_epochs, 0, 1e6, {}, "linear rise first; not with one_cycle"},
      {"schedule.rise", &schedule.rise, 0.001, 0.999, {}, "one_cycle: fraction of the steps before the peak"},
      {"schedule.annealing", &schedule.annealing, 0, 0, {"cosine", "linear"}, "one_cycle: cosine or linear"},
      {"schedule.start_divisor", &schedule.start_divisor, 1, 1e9, {}, "one_cycle: first rate = peak / this"},
      {"schedule.end_divisor", &schedule.end_divisor, 1, 1e12, {}, "one_cycle: last rate = first rate / this"},
      {"schedule.every_epochs", &schedule.every_epochs, 0, 1e6, {}, "step, exponential; 0: a third of the run"},
      {"schedule.factor", &schedule.factor, kTiny, 1, {}, "step, exponential, plateau, piecewise without factors"},
      {"schedule.boundaries", &schedule.boundaries, 0, 1e6, {}, "piecewise: epochs"},
      {"schedule.factors", &schedule.factors, 0, 1e6, {}, "piecewise: of the rate, before and after each boundary"},
      {"schedule.lines", &schedule.lines, 0, 0, {}, "piecewise: lines between the factors at the boundaries"},
      {"schedule.power", &schedule.power, kTiny, 100, {}, "polynomial"},
      {"schedule.end_factor", &schedule.end_factor, 0, 1, {}, "polynomial, plateau: lowest rate, over the peak"},
      {"schedule.periods", &schedule.periods, 0, 1e6, {}, "linear_cosine: cosine waves over the run"},
      {"schedule.alpha", &schedule.alpha, 0, 1, {}, "linear_cosine: added to the line"},
      {"schedule.beta", &schedule.beta, 0, 1, {}, "linear_cosine: added to the product"},
      {"schedule.monitor",
       &schedule.monitor,
       0,
       0,
       {"test_loss", "test_accuracy", "train_loss", "train_accuracy"},
       "plateau: test_loss, test_accuracy, train_loss or train_accuracy"},
      {"schedule.patience", &schedule.patience, 0, 1e6, {}, "plateau: epochs without improvement before a reduction"},
      {"schedule.threshold", &schedule.threshold, 0, 1, {}, "plateau: relative improvement that counts"},
      {"schedule.cooldown", &schedule.cooldown, 0, 1e6, {}, "plateau: epochs after a reduction that do not count"},
      {"momentum_schedule.name",
       &optimizer.momentum_schedule.name,
       0,
       0,
       {"constant", "one_cycle", "piecewise"},
       "constant (optimizer.momentum), one_cycle or piecewise"},
      {"momentum_schedule.low", &optimizer.momentum_schedule.low, 0, 0.9999999, {}, "one_cycle: where the rate peaks"},
      {"momentum_schedule.high", &optimizer.momentum_schedule.high, 0, 0.9999999, {}, "one_cycle: at both ends"},
      {"momentum_schedule.boundaries", &optimizer.momentum_schedule.boundaries, 0, 1e6, {}, "piecewise: epochs"},
      {"momentum_schedule.momenta",
       &optimizer.momentum_schedule.momenta,
       0,
       0.9999999,
       {},
       "piecewise: before and after each boundary"},
      {"momentum_schedule.lines", &optimizer.momentum_schedule.lines, 0, 0, {}, "piecewise: lines between the points"},
      {"batch_schedule.boundaries",
       &spec.batch_schedule.boundaries,
       -1e6,
       1e6,
       {},
       "whole epochs after which the batch changes; -1: before the last"},
      {"batch_schedule.batches",
       &spec.batch_schedule.batches,
       1,
       65536,
       {},
       "before and after each boundary; none: batch"},
      {"batch_schedule.accumulate", &spec.batch_schedule.accumulate, 1, 65536, {}, "likewise; none: accumulate"},
      {"batch_schedule.rate_scaling",
       &spec.batch_schedule.rate_scaling,
       0,
       0,
       {"none", "linear", "square_root"},
       "of the rate with samples per step over batch * accumulate: none, linear or square_root"},
      {"image_schedule.boundaries", &spec.image_schedule.boundaries, -1e6, 1e6, {}, "as batch_schedule.boundaries"},
      {"image_schedule.sizes",
       &spec.image_schedule.sizes,
       1,
       4096,
       {},
       "heights of training images, before and after each; none: the data's"},
      {"clip.norm", &spec.clip.norm, 0, 1e30, {}, "bound of the norm of all gradients together; 0: none"},
      {"clip.value", &spec.clip.value, 0, 1e30, {}, "bound of each element of the gradients; 0: none"},
      {"metrics.gradient_norm", &spec.metrics.gradient_norm, 0, 0, {}, "recorded even where clip.norm = 0"},
      {"ema.decay",
       &spec.ema.decay,
       0,
       0.9999999,
       {},
       "average of the weights, used and saved in their place; 0: none"},
      {"ema.warmup", &spec.ema.warmup, 0, 0, {}, "the decay begins at 0.1 and rises"},
      {"lookahead.steps", &spec.lookahead.steps, 0, 1e9, {}, "updates between synchronisations; 0: no look-ahead"},
      {"lookahead.alpha", &spec.lookahead.alpha, kTiny, 1, {}, "share of the way that the slow weights go"},
      {"lookahead.end_alpha", &spec.lookahead.end_alpha, -1, 1, {}, "the same at the end of the run; negative: alpha"},
      {"lookahead.power", &spec.lookahead.power, kTiny, 100, {}, "between them, of the part of the run that is done"},
      {"compression.method",
       &spec.compression.method,
       0,
       0,
       {"none", "auto", "bf16", "f16", "powersgd", "top_k", "one_bit"},
       "of the gradients that ranks exchange"},
      {"compression.tensors",
       &spec.compression.tensors,
       0,
       0,
       {"paid", "all"},
       "paid: those where it is predicted to pay; all: wherever it can be done"},
      {"compression.rank", &spec.compression.rank, 1, 1024, {}, "powersgd: columns of the products"},
      {"compression.share", &spec.compression.share, 1e-6, 0.5, {}, "top_k: of the elements"},
      {"averaging.period", &spec.averaging.period, 0, 1e9, {}, "steps that each rank trains on its own; 0: none"},
      {"averaging.adaptive", &spec.averaging.adaptive, 0, 0, {}, "the period shrinks as the loss does"},
      {"averaging.slow_momentum", &spec.averaging.slow_momentum, 0, 0.9999999, {}, "of the means of the weights"},
      {"averaging.slow_learning_rate", &spec.averaging.slow_learning_rate, kTiny, 100, {}, "of their way"},
      {"loss.label_smoothing", &spec.loss.label_smoothing, 0, 0.999, {}, "share of the target spread over all classes"},
      {"loss_scaling.mode",
       &scaling.mode,
       0,
       0,
       {"auto", "none", "dynamic", "fixed"},
       "auto (dynamic in f16, else none), none, dynamic or fixed"},
      {"loss_scaling.scale", &scaling.scale, kTiny, 1e38, {}, "of the loss, at the beginning"},
      {"loss_scaling.growth_factor", &scaling.growth_factor, 1, 1024, {}, "after growth_interval clean steps"},
      {"loss_scaling.backoff_factor", &scaling.backoff_factor, kTiny, 1, {}, "after an overflow"},
      {"loss_scaling.growth_interval", &scaling.growth_interval, 1, 1e12, {}, "steps without an overflow, in a row"},
      {"loss_scaling.patience", &scaling.patience, 1, 1e12, {}, "overflows in a row, then the run ends"},
      {"augment.normalise", &augment.normalise, 0, 0, {}, "by the mean and deviation of each channel"},
      {"augment.crop_padding", &augment.crop_padding, 0, 1024, {}, "pixels; 0: no random crop"},
      {"augment.padding", &augment.padding, 0, 0, {"zero", "reflect"}, "zero or reflect"},
      {"augment.flip", &augment.flip, 0, 0, {"none", "random", "alternating"}, "none, random or alternating"},
      {"augment.resized_crop", &augment.resized_crop, 0, 1, {}, "smallest share of the picture in a crop; 0: off"},
      {"augment.rotate", &augment.rotate, 0, 180, {}, "degrees, either way"},
      {"augment.brightness", &augment.brightness, 0, 1, {}, "factors from 1 - this to 1 + this"},
      {"augment.contrast", &augment.contrast, 0, 1, {}, "likewise"},
      {"augment.saturation", &augment.saturation, 0, 1, {}, "likewise"},
      {"augment.hue", &augment.hue, 0, 0.5, {}, "turns of the colour circle, either way"},
      {"augment.cutout", &augment.cutout, 0, 4096, {}, "side of a square set to the mean, in pixels; 0: off"},
      {"augment.erasing", &augment.erasing, 0, 1, {}, "probability that a rectangle is set to the mean"},
      {"augment.mixup", &augment.mixup, 0, 100, {}, "alpha: images mixed in pairs; 0: off"},
      {"augment.cutmix", &augment.cutmix, 0, 100, {}, "alpha: a box of another image; 0: off"},
      {"loader.workers", &spec.loader.workers, 0, 1024, {}, "threads that make batches; 0: automatic"},
      {"loader.prefetch", &spec.loader.prefetch, 0, 1024, {}, "batches made ahead; 0: automatic"},
      {"checkpoint.every_epochs", &spec.checkpoint.every_epochs, 0, 1e6, {}, "0: not by epochs"},
      {"checkpoint.every_steps", &spec.checkpoint.every_steps, 0, 1e12, {}, "0: not by steps"},
      {"checkpoint.every_seconds", &spec.checkpoint.every_seconds, 0, 1e9, {}, "0: not by time"},
      {"checkpoint.keep", &spec.checkpoint.keep, 1, 1e6, {}, "newest ones; the best is kept beside them"},
      {"evaluation.every_epochs", &spec.evaluation.every_epochs, 0, 1e6, {}, "0: after the last epoch only"},
      {"evaluation.batch", &spec.evaluation.batch, 0, 65536, {}, "0: as in training"},
      {"evaluation.tta", &spec.evaluation.tta, 0, 0, data::tta_names(), "views of a picture: none, flip or multicrop"},
  };
  fields.insert(fields.end(), rest.begin(), rest.end());
  return fields;
}

void set_field(RunSpec& spec, const std::string& key, const FieldValue& value, const std::string& where) {
  if (is_model_option(key)) {
    const auto* text = std::get_if<std::string>(&value);
    spec.model.options[key.substr(6)] = text != nullptr ? *text : shown(value);
    return;
  }
  make_group(spec, key, where);
  const std::vector<Field> fields = fields_of(spec);
  assign(find_field(fields, key == "model" ? "model.name" : key, where), value, where);
}

void require_section(RunSpec& spec, const std::string& section, const std::string& where) {
  if (section == "optimizer.groups") return;
  make_group(spec, section + ".match", where);
  std::vector<std::string> sections;
  for (const Field& field : fields_of(spec)) {
    const size_t point = field.key.rfind('.');
    if (point == std::string::npos) continue;
    const std::string known = field.key.substr(0, point);
    if (known == section) return;
    if (sections.empty() || sections.back() != known) sections.push_back(known);
  }
  fail(ErrorKind::usage, "{}: there is no section [{}]{}", where, section, suggestion(section, sections));
}

void set_from_text(RunSpec& spec, const std::string& assignment) {
  const std::string where = fmt::format("--set {}", assignment);
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    fail(ErrorKind::usage, "{}: wants KEY=VALUE, such as optimizer.learning_rate=0.1", where);
  const std::string key = assignment.substr(0, equals);
  std::string text = assignment.substr(equals + 1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (is_model_option(key)) return set_field(spec, key, text, where);
  make_group(spec, key, where);
  const std::vector<Field> fields = fields_of(spec);
  const Field& field = find_field(fields, key == "model" ? "model.name" : key, where);
  assign(field, value_of_kind(field, text), where);
}

}  // namespace weft::spec
