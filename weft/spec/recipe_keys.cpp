#include "weft/spec/recipe_keys.h"

#include <iterator>
#include <map>
#include <set>

namespace weft::spec {

std::vector<RecipeKey> recipe_keys(const Entries& entries, const std::vector<std::string>& groups) {
  std::vector<RecipeKey> keys;
  const auto add = [&](std::vector<RecipeKey> more) {
    keys.insert(keys.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  add(run_keys());
  add(optimizer_keys(entries));
  for (const std::string& group : groups) add(group_keys(entries, group));
  add(schedule_keys(entries));
  add(momentum_schedule_keys());
  add(stage_keys());
  add(update_keys(entries));
  add(rank_keys());
  add(loss_keys(entries));
  add(augment_keys(entries));
  add(upkeep_keys());
  return keys;
}

std::vector<BoundKey> bind_keys(RunSpec& spec, const Entries& entries) {
  std::vector<std::string> groups;
  for (const auto& [name, group] : spec.optimizer.groups) groups.push_back(name);
  std::vector<BoundKey> bound;
  for (RecipeKey& key : recipe_keys(entries, groups)) {
    if (key.own && !key.own(spec).contains(name_in_section(key.name))) continue;
    const KeyPlace place = key.place(spec);
    const bool is_quiet = key.is_quiet, is_left_open = key.measured && key.measured(spec);
    bound.push_back({std::move(key), place, is_quiet, is_left_open});
  }
  return bound;
}

namespace {

template <typename Entry>
void fill(OwnKeys& own, const Entry* entry, const std::set<std::string>& without_member) {
  if (entry == nullptr) return;
  for (const Key& key : entry->keys)
    if (without_member.contains(key.name)) own.try_emplace(key.name, key.value);
}

}  // namespace

void fill_own_keys(RunSpec& spec, const Entries& entries) {
  std::map<std::string, std::set<std::string>> without_member;  // by section
  for (const RecipeKey& key : recipe_keys(entries))
    if (key.own) without_member[section_of(key.name)].insert(name_in_section(key.name));
  fill(spec.optimizer.own, find_entry(entries.optimizers, spec.optimizer.name), without_member["optimizer"]);
  fill(spec.schedule.own, find_entry(entries.schedules, spec.schedule.name), without_member["schedule"]);
  for (const auto& [name, group] : spec.optimizer.groups)
    fill(spec.schedule.own, find_entry(entries.schedules, group.schedule), without_member["schedule"]);
  fill(spec.loss.own, find_entry(entries.losses, spec.loss.name), without_member["loss"]);
  // Of these a run may use several, and whoever reads a key finds it.
  for (const MetricEntry& metric : entries.metrics) fill(spec.metrics.own, &metric, without_member["metrics"]);
  for (const AugmentationEntry& change : entries.augmentations)
    fill(spec.augment.own, &change, without_member["augment"]);
}

void add_own_keys(RunSpec& spec, const RunSpec& from, const Entries& entries) {
  RunSpec copy = from;
  for (const RecipeKey& key : recipe_keys(entries))
    if (key.own && key.own(copy).contains(name_in_section(key.name))) key.place(spec);
}

KeyValue value_at(const KeyPlace& place) {
  return std::visit([](const auto* value) { return KeyValue(*value); }, place);
}

void put_value(const KeyPlace& place, const KeyValue& value) {
  std::visit([&](auto* target) { *target = std::get<std::decay_t<decltype(*target)>>(value); }, place);
}

std::string section_of(const std::string& key) {
  const size_t point = key.rfind('.');
  return point == std::string::npos ? "" : key.substr(0, point);
}

std::string name_in_section(const std::string& key) {
  const size_t point = key.rfind('.');
  return point == std::string::npos ? key : key.substr(point + 1);
}

}  // namespace weft::spec
