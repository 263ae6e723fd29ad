#include "weft/train/run_spec.h"

#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft::train {

namespace {

constexpr double kTiny = 1e-30;  // smallest accepted value of what must be above zero

std::string shown(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("'{}'", *text);
  return std::visit([](const auto& v) -> std::string { return fmt::format("{}", v); }, value);
}

std::string_view wanted_kind(const Field& field) {
  constexpr std::string_view kinds[] = {"a text", "a whole number", "a number", "true or false"};
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

FieldValue value_of_kind(const Field& field, const std::string& text) {
  int64_t integer = 0;
  double real = 0;
  if (std::holds_alternative<std::string*>(field.target)) return text;
  if (std::holds_alternative<bool*>(field.target) && (text == "true" || text == "false")) return text == "true";
  if (std::holds_alternative<int64_t*>(field.target) && parse_number(text, integer)) return integer;
  if (std::holds_alternative<double*>(field.target) && parse_number(text, real)) return real;
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

bool is_model_option(const std::string& key) { return key.starts_with("model.") && key != "model.name"; }

}  // namespace

std::vector<Field> fields_of(RunSpec& spec) {
  auto& [name, learning_rate, weight_decay, momentum, nesterov, beta1, beta2, epsilon] = spec.optimizer;
  ScheduleSpec& schedule = spec.schedule;
  return {
      {"model.name", &spec.model.name, 0, 0, {}, "`weft models` lists them; other keys of [model] are its options"},
      {"data", &spec.data, 0, 0, {}, "such as fashion-mnist, cifar10:DIR or csv:FILE; `weft data --help` lists all"},
      {"init", &spec.init, 0, 0, {}, "safetensors file of the weights to start from; empty: the seed draws them"},
      {"epochs", &spec.epochs, 1, 1e6, {}, "passes over the training data"},
      {"batch", &spec.batch, 1, 65536, {}, "samples per step"},
      {"seed", &spec.seed, 0, 9e15, {}, "of weights, order and augmentation"},
      {"threads", &spec.threads, 0, 1024, {}, "0: all cores this process may use"},
      {"precision", &spec.precision, 0, 0, {"f32"}, "of the computation"},
      {"optimizer.name", &name, 0, 0, {"sgd", "adamw"}, "sgd or adamw"},
      {"optimizer.learning_rate", &learning_rate, kTiny, 1e6, {}, "the peak, which the schedule scales"},
      {"optimizer.weight_decay", &weight_decay, 0, 1e3, {}, "not applied to bias and norm"},
      {"optimizer.momentum", &momentum, 0, 0.9999999, {}, "sgd"},
      {"optimizer.nesterov", &nesterov, 0, 0, {}, "sgd"},
      {"optimizer.beta1", &beta1, 0, 0.9999999, {}, "adamw"},
      {"optimizer.beta2", &beta2, 0, 0.9999999, {}, "adamw"},
      {"optimizer.epsilon", &epsilon, kTiny, 1, {}, "adamw"},
      {"schedule.name", &schedule.name, 0, 0, {"constant", "cosine", "one_cycle"}, "constant, cosine or one_cycle"},
      {"schedule.warmup_epochs", &schedule.warmup_epochs, 0, 1e6, {}, "linear rise before constant or cosine"},
      {"schedule.rise", &schedule.rise, 0.001, 0.999, {}, "one_cycle: fraction of the steps before the peak"},
      {"schedule.annealing", &schedule.annealing, 0, 0, {"cosine", "linear"}, "one_cycle: cosine or linear"},
      {"schedule.start_divisor", &schedule.start_divisor, 1, 1e9, {}, "one_cycle: first rate = peak / this"},
      {"schedule.end_divisor", &schedule.end_divisor, 1, 1e12, {}, "one_cycle: last rate = first rate / this"},
      {"loss.label_smoothing", &spec.loss.label_smoothing, 0, 0.999, {}, "share of the target spread over all classes"},
      {"augment.normalise", &spec.augment.normalise, 0, 0, {}, "by the mean and deviation of each channel"},
      {"augment.crop_padding", &spec.augment.crop_padding, 0, 1024, {}, "pixels; 0: no random crop"},
      {"augment.padding", &spec.augment.padding, 0, 0, {"zero", "reflect"}, "zero or reflect"},
      {"augment.flip", &spec.augment.flip, 0, 0, {"none", "random", "alternating"}, "none, random or alternating"},
      {"checkpoint.every_epochs", &spec.checkpoint.every_epochs, 0, 1e6, {}, "0: not by epochs"},
      {"checkpoint.every_steps", &spec.checkpoint.every_steps, 0, 1e12, {}, "0: not by steps"},
      {"checkpoint.every_seconds", &spec.checkpoint.every_seconds, 0, 1e9, {}, "0: not by time"},
      {"checkpoint.keep", &spec.checkpoint.keep, 1, 1e6, {}, "newest ones; the best is kept beside them"},
      {"evaluation.every_epochs", &spec.evaluation.every_epochs, 0, 1e6, {}, "0: after the last epoch only"},
      {"evaluation.batch", &spec.evaluation.batch, 0, 65536, {}, "0: as in training"},
  };
}

void set_field(RunSpec& spec, const std::string& key, const FieldValue& value, const std::string& where) {
  if (is_model_option(key)) {
    const auto* text = std::get_if<std::string>(&value);
    spec.model.options[key.substr(6)] = text != nullptr ? *text : shown(value);
    return;
  }
  const std::vector<Field> fields = fields_of(spec);
  assign(find_field(fields, key == "model" ? "model.name" : key, where), value, where);
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
  const std::vector<Field> fields = fields_of(spec);
  const Field& field = find_field(fields, key == "model" ? "model.name" : key, where);
  assign(field, value_of_kind(field, text), where);
}

void resolve(RunSpec& spec) {
  if (spec.model.name.empty())
    fail(ErrorKind::usage, "no model given; name a recipe or add --model M (`weft models` lists them)");
  const bool adamw = spec.optimizer.name == "adamw";
  if (spec.optimizer.learning_rate == 0) spec.optimizer.learning_rate = adamw ? 1e-3 : 0.05;
  if (spec.optimizer.weight_decay < 0) spec.optimizer.weight_decay = adamw ? 1e-2 : 5e-4;
  if (spec.threads == 0) spec.threads = available_cores();
  if (spec.evaluation.batch == 0) spec.evaluation.batch = spec.batch;
  if (spec.schedule.name == "one_cycle" && spec.schedule.warmup_epochs != 0)
    fail(ErrorKind::usage,
         "schedule.warmup_epochs = {} with schedule.name = 'one_cycle': one_cycle warms up by itself; set "
         "schedule.rise instead",
         spec.schedule.warmup_epochs);
  if (spec.schedule.warmup_epochs > static_cast<double>(spec.epochs))
    fail(ErrorKind::usage, "schedule.warmup_epochs = {} is longer than the run of {} epochs; lower it",
         spec.schedule.warmup_epochs, spec.epochs);
}

void choose_threads(RunSpec& spec, int64_t threads) {
  spec.threads = threads > 0 ? threads : std::min(spec.threads, available_cores());
}

int64_t available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace weft::train
