// All keys of a recipe, each declared once (weft/spec/keys/, a file per kind of key) with its place in a RunSpec.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weft/library/key.h"
#include "weft/spec/run_spec.h"

namespace weft::spec {

/// Where the value of a key lies; in the order of KeyValue.
using KeyPlace = std::variant<std::string*, int64_t*, double*, bool*, std::vector<double>*>;

struct RecipeKey : Key {
  std::function<KeyPlace(RunSpec&)> place;
};

/// A key of one RunSpec.
struct BoundKey : Key {
  KeyPlace place;
};

/// Every key but the model's options, in the order of the recipe; those of [optimizer.groups.NAME] for each of
/// `groups`.
std::vector<RecipeKey> recipe_keys(const std::vector<std::string>& groups = {});

/// The same with their places in `spec`, of its own groups.
std::vector<BoundKey> bind_keys(RunSpec& spec);

KeyValue value_at(const KeyPlace& place);
/// Of the same kind as what lies there.
void put_value(const KeyPlace& place, const KeyValue& value);

/// "optimizer.groups.head" of "optimizer.groups.head.match"; "" for the keys above all tables.
std::string section_of(const std::string& key);
/// "match" of the same.
std::string name_in_section(const std::string& key);

/// The keys of one table of the recipe: their kinds and defaults are those of the members that hold them.
template <typename Part>
class KeySection {
 public:
  using Find = std::function<Part&(RunSpec&)>;
  KeySection(std::string section, Find find) : section_(std::move(section)), find_(std::move(find)) {}

  template <typename Value>
  KeySection& add(const char* name, Value Part::*member, Key key) {
    key.name = section_.empty() ? name : section_ + "." + name;
    key.value = Part().*member;
    keys_.push_back(
        {std::move(key), [find = find_, member](RunSpec& spec) -> KeyPlace { return &(find(spec).*member); }});
    return *this;
  }
  std::vector<RecipeKey> take() { return std::move(keys_); }

 private:
  std::string section_;
  Find find_;
  std::vector<RecipeKey> keys_;
};

/// "optimizer.groups.NAME" is the table of the group NAME.
inline const std::string kGroups = "optimizer.groups.";

std::vector<std::string> schedule_names();

// The tables of the recipe, in its order.
std::vector<RecipeKey> run_keys();
std::vector<RecipeKey> optimizer_keys();
std::vector<RecipeKey> group_keys(const std::string& group);
std::vector<RecipeKey> schedule_keys();
std::vector<RecipeKey> momentum_schedule_keys();
std::vector<RecipeKey> stage_keys();   // batch_schedule, image_schedule
std::vector<RecipeKey> update_keys();  // clip, metrics, ema, lookahead
std::vector<RecipeKey> rank_keys();    // compression, averaging
std::vector<RecipeKey> loss_keys();    // loss, loss_scaling
std::vector<RecipeKey> augment_keys();
std::vector<RecipeKey> upkeep_keys();  // loader, checkpoint, evaluation

}  // namespace weft::spec
