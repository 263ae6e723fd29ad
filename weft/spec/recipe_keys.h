// All keys of a recipe, each declared once with its place in a RunSpec. weft/spec/keys/ declares those of the run, a
// file per kind; entries declare their own (weft/library/entries.h).
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/error.h"
#include "weft/library/entries.h"
#include "weft/library/key.h"
#include "weft/spec/run_spec.h"

namespace weft::spec {

/// Where the value of a key is stored; alternatives in the order of KeyValue.
using KeyPlace = std::variant<std::string*, int64_t*, double*, bool*, std::vector<double>*>;

struct RecipeKey : Key {
  std::function<KeyPlace(RunSpec&)> place = {};  // makes the place where there is none yet
  /// For a key that is stored in an OwnKeys map, where something has set it, and not in a member.
  std::function<OwnKeys&(RunSpec&)> own = {};
  bool is_quiet = false;  // printed only where it differs from its default: it is newer than the first spec.toml
  /// Of a key whose `auto` is measured: whether the spec leaves it to that. Else empty.
  std::function<bool&(RunSpec&)> measured = {};
};

/// A key with its place in one RunSpec.
struct BoundKey : Key {
  KeyPlace place = {};
  bool is_quiet = false;
  bool is_left_open = false;  // to a measurement before the first step
};

/// Every key except the model's options, in the order of the recipe, with those of [optimizer.groups.NAME] for each of
/// `groups`.
std::vector<RecipeKey> recipe_keys(const Entries& entries = standard_entries(),
                                   const std::vector<std::string>& groups = {});

/// The same with their places in `spec`, for its own groups. Keys without a member are included only where they are
/// set.
std::vector<BoundKey> bind_keys(RunSpec& spec, const Entries& entries = standard_entries());

/// Sets the keys without a member to their defaults, where an entry that `spec` names reads them.
void fill_own_keys(RunSpec& spec, const Entries& entries);
/// Sets keys that only `from` has to their defaults in `spec`, so that both have the same keys.
void add_own_keys(RunSpec& spec, const RunSpec& from, const Entries& entries);

KeyValue value_at(const KeyPlace& place);
/// `value` must have the kind of the value at `place`.
void put_value(const KeyPlace& place, const KeyValue& value);

/// "optimizer.groups.head" for "optimizer.groups.head.match"; "" for keys outside all tables.
std::string section_of(const std::string& key);
/// "match" for the same key.
std::string name_in_section(const std::string& key);

/// The member of a part of a RunSpec that holds a key.
template <typename Part>
using Member =
    std::variant<std::string Part::*, int64_t Part::*, double Part::*, bool Part::*, std::vector<double> Part::*>;

/// The keys of one table of the recipe. Kinds and defaults come from the members that hold them.
template <typename Part>
class KeySection {
 public:
  using Find = std::function<Part&(RunSpec&)>;
  KeySection(std::string section, Find find) : section_(std::move(section)), find_(std::move(find)) {}

  template <typename Value>
  KeySection& add(const char* name, Value Part::*member, Key key) {
    key.name = section_.empty() ? name : section_ + "." + name;
    key.value = Part().*member;
    push(std::move(key), [find = find_, member](RunSpec& spec) -> KeyPlace { return &(find(spec).*member); });
    return *this;
  }
  /// Makes the last key added quiet (RecipeKey::is_quiet).
  KeySection& quiet() {
    keys_.back().is_quiet = true;
    return *this;
  }
  /// The `auto` of the last key added is measured before the first step, where the member of MeasuredKeys says so.
  KeySection& measured(bool MeasuredKeys::*member) {
    keys_.back().is_measured = true;
    keys_.back().measured = [member](RunSpec& spec) -> bool& { return spec.measured.*member; };
    return *this;
  }
  /// Adds keys that entries declare. Keys in `members` are stored there, in the order of `members`; all others are
  /// stored in Part::own.
  KeySection& add_declared(const std::vector<Key>& declared,
                           const std::vector<std::pair<const char*, Member<Part>>>& members) {
    for (const auto& [name, member] : members)
      for (const Key& key : declared)
        if (key.name == name) std::visit([&, text = name](auto place) { add(text, place, key); }, member);
    for (const Key& key : declared)
      if (std::none_of(members.begin(), members.end(), [&](const auto& one) { return key.name == one.first; }))
        add_own(key);
    return *this;
  }
  std::vector<RecipeKey> take() { return std::move(keys_); }

 private:
  void push(Key key, std::function<KeyPlace(RunSpec&)> place) {
    if (std::any_of(keys_.begin(), keys_.end(), [&](const RecipeKey& one) { return one.name == key.name; }))
      fail(ErrorKind::usage, "an entry of the library declares the key '{}', which weft has already; rename it",
           key.name);
    static_cast<Key&>(keys_.emplace_back()) = std::move(key);
    keys_.back().place = std::move(place);
  }
  void add_own(Key key) {
    const std::string name = key.name;
    key.name = section_ + "." + name;
    const auto own = [find = find_](RunSpec& spec) -> OwnKeys& { return find(spec).own; };
    push(key, [own, name, value = key.value](RunSpec& spec) {
      return std::visit([](auto& held) { return KeyPlace(&held); }, own(spec).try_emplace(name, value).first->second);
    });
    keys_.back().own = own;
  }

  std::string section_;
  Find find_;
  std::vector<RecipeKey> keys_;
};

/// "optimizer.groups.NAME" is the table of the group NAME.
inline const std::string kGroups = "optimizer.groups.";

// The tables of the recipe, in their order.
std::vector<RecipeKey> run_keys();
std::vector<RecipeKey> optimizer_keys(const Entries& entries);
std::vector<RecipeKey> group_keys(const Entries& entries, const std::string& group);
std::vector<RecipeKey> schedule_keys(const Entries& entries);
std::vector<RecipeKey> momentum_schedule_keys();
std::vector<RecipeKey> stage_keys();                         // batch_schedule, image_schedule
std::vector<RecipeKey> update_keys(const Entries& entries);  // clip, metrics, ema, lookahead
std::vector<RecipeKey> rank_keys();                          // compression, averaging, mesh, shard, balance
std::vector<RecipeKey> loss_keys(const Entries& entries);    // loss, loss_scaling
std::vector<RecipeKey> augment_keys(const Entries& entries);
std::vector<RecipeKey> upkeep_keys();  // loader, checkpoint, evaluation, stop

}  // namespace weft::spec
