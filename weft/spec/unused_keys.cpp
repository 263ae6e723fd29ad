// Which keys of a recipe are set and do nothing, so that a run can say so.
#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/spec/course.h"
#include "weft/spec/recipe.h"
#include "weft/spec/recipe_keys.h"
#include "weft/spec/resolve_optimizer.h"
#include "weft/spec/run_spec.h"

namespace weft::spec {

namespace {

/// What a batch schedule leaves without effect.
void add_unused_batches(const RunSpec& spec, std::vector<std::string>& keys) {
  const BatchScheduleSpec& schedule = spec.batch_schedule;
  const auto& batches = schedule.batches;
  const auto base = static_cast<double>(spec.batch);
  if (!batches.empty() && schedule.rate_scaling == "none" &&
      std::find(batches.begin(), batches.end(), base) == batches.end())
    keys.push_back(
        fmt::format("batch = {} beside batch_schedule.batches = [{}]", spec.batch, fmt::join(batches, ", ")));
  for (const auto& [section, boundaries] : {std::pair("batch_schedule", &schedule.boundaries),
                                            std::pair("image_schedule", &spec.image_schedule.boundaries)})
    for (const double boundary : *boundaries)
      if (boundary_epoch(boundary, spec) >= static_cast<double>(begun_epochs(spec)))
        keys.push_back(fmt::format("{}.boundaries: {} in a run of {} epochs", section, boundary, spec.epochs));
}

/// Keys that another key leaves without effect.
struct UnusedSection {
  std::string section, but;  // all of its keys but this one, which turns them on,
  std::string key;           // or this key alone
  std::string why;
};

std::vector<UnusedSection> unused_sections(const RunSpec& spec) {
  std::vector<UnusedSection> unused;
  if (!scales_loss(spec))
    unused.push_back(
        {"loss_scaling", "loss_scaling.mode", "",
         fmt::format("with loss_scaling.mode = '{}'{}", spec.loss_scaling.mode,
                     spec.loss_scaling.mode == "auto" ? " and precision = '" + spec.precision + "'" : "")});
  if (spec.mesh.tensor == 1)
    for (const char* key : {"shard.tensor", "shard.sequence"})
      unused.push_back({"shard", "", key, "with mesh.tensor = 1"});
  if (spec.mesh.pipeline == 1)
    unused.push_back({"pipeline", "", "", "with mesh.pipeline = 1"});
  else if (spec.pipeline.schedule != "interleaved")
    unused.push_back(
        {"pipeline", "", "pipeline.chunks", fmt::format("with pipeline.schedule = '{}'", spec.pipeline.schedule)});
  if (spec.compression.method == "none")
    unused.push_back({"compression", "compression.method", "", "with compression.method = 'none'"});
  if (spec.lookahead.steps == 0) unused.push_back({"lookahead", "lookahead.steps", "", "with lookahead.steps = 0"});
  return unused;
}

}  // namespace

std::vector<std::string> keys_without_effect(const RunSpec& spec, data::TargetKind targets, const Entries& entries) {
  RunSpec copy = spec, defaults;
  defaults.optimizer.name = spec.optimizer.name;
  resolve_optimizer(defaults.optimizer, entries);
  add_own_keys(defaults, spec, entries);
  const std::vector<BoundKey> bound = bind_keys(copy, entries), default_keys = bind_keys(defaults, entries);
  // By name: the keys of groups stand between the others.
  const auto value_of = [](const std::vector<BoundKey>& all, std::string_view name) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const BoundKey& key) { return key.name == name; });
    return literal(value_at(found->place));
  };
  std::vector<std::string> keys;
  for (const BoundKey& key : bound) {
    const auto& readers = key.read_by;
    if (section_of(key.name) != "optimizer" || readers.empty()) continue;
    if (std::find(readers.begin(), readers.end(), spec.optimizer.name) != readers.end()) continue;
    const std::string value = value_of(bound, key.name);
    if (value != value_of(default_keys, key.name))
      keys.push_back(fmt::format("{} = {} with optimizer.name = '{}'", key.name, value, spec.optimizer.name));
  }
  if (spec.optimizer.momentum_schedule.changes() && spec.optimizer.momentum != defaults.optimizer.momentum)
    keys.push_back(fmt::format("optimizer.momentum = {} with momentum_schedule.name = '{}'", spec.optimizer.momentum,
                               spec.optimizer.momentum_schedule.name));
  add_unused_batches(spec, keys);
  if (!spec.offload.empty() && spec.memory_limit.empty())
    keys.push_back(fmt::format("offload = '{}' without memory_limit", spec.offload));
  const std::vector<UnusedSection> sections = unused_sections(spec);
  for (const BoundKey& key : bound)
    for (const UnusedSection& unused : sections) {
      if (section_of(key.name) != unused.section || key.name == unused.but) continue;
      if (!unused.key.empty() && key.name != unused.key) continue;
      const std::string value = value_of(bound, key.name);
      if (value != value_of(default_keys, key.name))
        keys.push_back(fmt::format("{} = {} {}", key.name, value, unused.why));
    }
  if (spec.loss.label_smoothing > 0 && targets == data::TargetKind::values)
    keys.push_back(fmt::format("loss.label_smoothing = {} where values are predicted", spec.loss.label_smoothing));
  return keys;
}

}  // namespace weft::spec
