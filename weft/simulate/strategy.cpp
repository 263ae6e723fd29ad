#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/base/parse_number.h"
#include "weft/simulate/transformer.h"

namespace weft::simulate {

namespace {

constexpr const char* kInterleaved = "interleaved";
constexpr int kLargest = 1'000'000'000;  // fits all numbers of a shape and a strategy, and so does the product of two
constexpr int64_t kMostLayers = 100'000;

int whole(const std::string& key, const std::string& value) {
  const std::optional<int64_t> number = parse_number<int64_t>(value);
  if (!number || *number < 0 || *number > kLargest)
    fail(ErrorKind::usage, "{}={} has to be a whole number from 0 to {}", key, value, kLargest);
  return static_cast<int>(*number);
}

bool yes(const std::string& key, const std::string& value) {
  if (value == "yes" || value == "no") return value == "yes";
  fail(ErrorKind::usage, "{}={} has to be yes or no", key, value);
}

/// Calls `set` for each KEY=VALUE of a text. `known`: the keys that there are.
void for_each_key(std::string_view text, const char* option, const std::vector<std::string>& known,
                  const std::function<void(const std::string& key, const std::string& value)>& set) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item(text.substr(begin, end - begin));
    begin = end + 1;
    const size_t equals = item.find('=');
    if (equals == item.npos)
      fail(ErrorKind::usage, "{}: '{}' is no KEY=VALUE; write such, separated by commas", option, item);
    const std::string key = item.substr(0, equals);
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(ErrorKind::usage, "{}: there is no key '{}'{}", option, key, suggestion(key, known));
    set(key, item.substr(equals + 1));
  }
}

template <typename Enum>
Enum one_of(const std::string& key, const std::string& value, std::initializer_list<Enum> all) {
  std::vector<std::string> names;
  for (const Enum each : all) {
    names.emplace_back(name_of(each));
    if (names.back() == value) return each;
  }
  fail(ErrorKind::usage, "{}={}{}", key, value, suggestion(value, names));
}

using Set = std::function<void(Strategy&, const std::string& key, const std::string& value)>;

template <typename Number>
Set number(Number Strategy::*member) {
  return [member](Strategy& strategy, const std::string& key, const std::string& value) {
    strategy.*member = whole(key, value);
  };
}
Set flag(bool Strategy::*member) {
  return [member](Strategy& strategy, const std::string& key, const std::string& value) {
    strategy.*member = yes(key, value);
  };
}
Set arithmetic(machines::Arithmetic Strategy::*member) {
  return [member](Strategy& strategy, const std::string& key, const std::string& value) {
    const std::optional<machines::Arithmetic> parsed = machines::parse_arithmetic(value);
    if (!parsed) fail(ErrorKind::usage, "{}={} has to be f32, tf32, f16, bf16, f8 or i8", key, value);
    strategy.*member = *parsed;
  };
}

const std::map<std::string, Set>& setters() {
  static const std::map<std::string, Set> all = {
      {"data", number(&Strategy::data)},
      {"tensor", number(&Strategy::tensor)},
      {"pipeline", number(&Strategy::pipeline)},
      {"context", number(&Strategy::context)},
      {"replicas", number(&Strategy::replicas)},
      {"batch", number(&Strategy::batch)},
      {"micro-batch", number(&Strategy::micro_batch)},
      {"chunks", number(&Strategy::chunks)},
      {"zero", number(&Strategy::zero)},
      {"gradient-bytes", number(&Strategy::gradient_bytes)},
      {"sequence-parallel", flag(&Strategy::sequence_parallel)},
      {"flash", flag(&Strategy::flash_attention)},
      {"overlap", flag(&Strategy::overlaps_gradients)},
      {"overlap-messages", flag(&Strategy::overlaps_messages)},
      {"overlap-tensor", flag(&Strategy::overlaps_tensor)},
      {"fused", flag(&Strategy::fused)},
      {"arithmetic", arithmetic(&Strategy::arithmetic)},
      {"stored", arithmetic(&Strategy::stored)},
      {"recompute",
       [](Strategy& strategy, const std::string& key, const std::string& value) {
         strategy.recompute =
             one_of(key, value, {Recompute::none, Recompute::selective, Recompute::half, Recompute::full});
       }},
      {"schedule",
       [](Strategy& strategy, const std::string& key, const std::string& value) {
         // "interleaved" is what pipeline.schedule calls 1f1b with chunks.
         strategy.schedule = value == kInterleaved
                                 ? PipelineSchedule::one_forward_one_backward
                                 : one_of(key, value,
                                          {PipelineSchedule::one_forward_one_backward, PipelineSchedule::gpipe,
                                           PipelineSchedule::zero_bubble_1, PipelineSchedule::zero_bubble_2,
                                           PipelineSchedule::zero_bubble, PipelineSchedule::zero_bubble_v});
       }},
  };
  return all;
}

/// Whose product may be more than an int holds.
double ranks_of_replica(const Strategy& s) { return double{1} * s.tensor * s.pipeline * s.context; }

void require_consistent(const Strategy& s, int ranks) {
  for (const auto& [name, value] : std::map<std::string, int64_t>{{"data", s.data},
                                                                  {"tensor", s.tensor},
                                                                  {"pipeline", s.pipeline},
                                                                  {"context", s.context},
                                                                  {"replicas", s.replicas},
                                                                  {"batch", s.batch},
                                                                  {"micro-batch", s.micro_batch},
                                                                  {"chunks", s.chunks}})
    if (value < 1) fail(ErrorKind::usage, "--strategy: {} has to be 1 or more", name);
  if (s.zero > 3) fail(ErrorKind::usage, "--strategy: zero={} has to be 0, 1, 2 or 3", s.zero);
  if (const double all = s.data * ranks_of_replica(s); all != ranks)
    fail(ErrorKind::usage,
         "--strategy: data={} x tensor={} x pipeline={} x context={} are {:.0f} ranks, not {}; leave data away, or "
         "give --ranks {:.0f}",
         s.data, s.tensor, s.pipeline, s.context, all, ranks, all);
  if (s.data % s.replicas != 0)
    fail(ErrorKind::usage, "--strategy: replicas={} does not divide data={}", s.replicas, s.data);
  static_cast<void>(s.micro_batches());
}

}  // namespace

int64_t Strategy::micro_batches() const {
  const int64_t at_once = int64_t{data} * micro_batch;
  if (batch % at_once != 0)
    fail(ErrorKind::usage,
         "a batch of {} does not divide into micro-batches of {} on {} data ranks; choose a multiple of {}", batch,
         micro_batch, data, at_once);
  return batch / at_once;
}

Strategy parse_strategy(std::string_view text, int ranks, int64_t batch) {
  Strategy strategy{.data = 0, .batch = batch};
  bool has_stored = false, has_two_chunks = false;
  std::vector<std::string> names;
  for (const auto& [name, set] : setters()) names.push_back(name);
  for_each_key(text, "--strategy", names, [&](const std::string& key, const std::string& value) {
    setters().at(key)(strategy, key, value);
    has_stored |= key == "stored";
    if (key == "schedule") has_two_chunks = value == kInterleaved || value == name_of(PipelineSchedule::zero_bubble_v);
  });
  if (has_two_chunks) strategy.chunks = std::max(strategy.chunks, 2);
  if (strategy.schedule == PipelineSchedule::zero_bubble_v && strategy.chunks != 2)
    fail(ErrorKind::usage,
         "--strategy: schedule=zero_bubble_v has two chunks of layers on each stage; leave chunks={} away",
         strategy.chunks);
  if (!has_stored)
    strategy.stored =
        machines::bytes_of(strategy.arithmetic) == 4 ? machines::Arithmetic::f32 : machines::Arithmetic::bf16;
  if (strategy.data == 0) {
    const double others = ranks_of_replica(strategy);
    if (others < 1 || others > ranks || ranks % static_cast<int>(others) != 0)
      fail(ErrorKind::usage, "--strategy: tensor x pipeline x context are {:.0f}, which does not divide {} ranks",
           others, ranks);
    strategy.data = ranks / static_cast<int>(others);
  }
  require_consistent(strategy, ranks);
  return strategy;
}

TransformerShape parse_shape(std::string_view text) {
  TransformerShape shape;
  const std::map<std::string, int64_t TransformerShape::*> numbers = {
      {"layers", &TransformerShape::layers},         {"hidden", &TransformerShape::hidden},
      {"heads", &TransformerShape::heads},           {"key-heads", &TransformerShape::key_heads},
      {"sequence", &TransformerShape::sequence},     {"feed-forward", &TransformerShape::feed_forward},
      {"vocabulary", &TransformerShape::vocabulary},
  };
  const std::map<std::string, bool TransformerShape::*> flags = {
      {"gated", &TransformerShape::gated}, {"causal", &TransformerShape::causal}, {"tied", &TransformerShape::tied}};
  std::vector<std::string> names = {"predicted-percent"};
  for (const auto& [name, member] : numbers) names.push_back(name);
  for (const auto& [name, member] : flags) names.push_back(name);
  for_each_key(text, "--shape", names, [&](const std::string& key, const std::string& value) {
    if (numbers.contains(key))
      shape.*numbers.at(key) = whole(key, value);
    else if (flags.contains(key))
      shape.*flags.at(key) = yes(key, value);
    else
      shape.predicted_share = static_cast<double>(whole(key, value)) / 100;
  });
  for (const char* key : {"layers", "hidden", "heads", "sequence", "vocabulary"})
    if (shape.*numbers.at(key) < 1) fail(ErrorKind::usage, "--shape: {} has to be 1 or more", key);
  if (shape.layers > kMostLayers)
    fail(ErrorKind::usage, "--shape: layers={} are more than the {} that can be simulated; choose fewer", shape.layers,
         kMostLayers);
  return shape.completed();
}

std::string describe(const Strategy& s) {
  std::string text = fmt::format("data={},tensor={},pipeline={},context={},batch={},micro-batch={}", s.data, s.tensor,
                                 s.pipeline, s.context, s.batch, s.micro_batch);
  if (s.replicas > 1) text += fmt::format(",replicas={}", s.replicas);
  if (s.pipeline > 1) text += fmt::format(",schedule={},chunks={}", name_of(s.schedule), s.chunks);
  if (s.zero > 0) text += fmt::format(",zero={}", s.zero);
  text += fmt::format(",recompute={},arithmetic={}", name_of(s.recompute), machines::name_of(s.arithmetic));
  if (s.sequence_parallel) text += ",sequence-parallel=yes";
  if (s.flash_attention) text += ",flash=yes";
  if (s.fused) text += ",fused=yes";
  if (!s.overlaps_gradients) text += ",overlap=no";
  if (s.overlaps_messages) text += ",overlap-messages=yes";
  if (s.overlaps_tensor) text += ",overlap-tensor=yes";
  return text;
}

}  // namespace weft::simulate
