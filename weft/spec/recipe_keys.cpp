#include "weft/spec/recipe_keys.h"

#include <iterator>

namespace weft::spec {

std::vector<RecipeKey> recipe_keys(const std::vector<std::string>& groups) {
  std::vector<RecipeKey> keys;
  const auto add = [&](std::vector<RecipeKey> more) {
    keys.insert(keys.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  add(run_keys());
  add(optimizer_keys());
  for (const std::string& group : groups) add(group_keys(group));
  add(schedule_keys());
  add(momentum_schedule_keys());
  add(stage_keys());
  add(update_keys());
  add(rank_keys());
  add(loss_keys());
  add(augment_keys());
  add(upkeep_keys());
  return keys;
}

std::vector<BoundKey> bind_keys(RunSpec& spec) {
  std::vector<std::string> groups;
  for (const auto& [name, group] : spec.optimizer.groups) groups.push_back(name);
  std::vector<BoundKey> bound;
  for (RecipeKey& key : recipe_keys(groups)) {
    const KeyPlace place = key.place(spec);
    bound.push_back({std::move(key), place});
  }
  return bound;
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
