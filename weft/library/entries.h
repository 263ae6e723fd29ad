// What a recipe or its data name beside models: optimisers, schedules, losses, metrics, augmentations and tasks. Each
// is an entry with the keys that it reads, one file and one line in the table of its kind; programs add their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/library/augmentation.h"
#include "weft/library/key.h"
#include "weft/library/metric.h"
#include "weft/library/task.h"

// Only named here: entries are called by what stands above this folder.
namespace weft::spec {
struct LossSpec;
struct ScheduleSpec;
class Course;
}  // namespace weft::spec
namespace weft::step {
class UpdateBuilder;
struct UpdatedParameter;
}  // namespace weft::step

namespace weft {

struct OptimizerEntry {
  std::string name;             // "sgd"
  std::string summary = {};     // a line: what it is, and after whom
  double learning_rate = 0.01;  // where the recipe says nothing
  double weight_decay = 0;      // likewise
  std::vector<Key> keys = {};   // of [optimizer] that it reads beside those two, by their short names
  /// Adds the updates of the parameters to the graph of the step (weft/step/optimizers/update_builder.h).
  std::function<void(step::UpdateBuilder&, const std::vector<step::UpdatedParameter>&)> build = {};
};

/// The learning rate at each step, from 0.
using RateOfStep = std::function<double(int64_t step)>;

struct ScheduleEntry {
  std::string name;            // "cosine"
  std::string summary = {};    // a line
  std::vector<Key> keys = {};  // of [schedule] that it reads, by their short names
  bool for_groups = true;      // false: of the whole run only
  /// Of a run whose steps lie as the course says. Warm-up is the entry's too: after_rise() and with_rise() of
  /// weft/step/schedules/schedule.h. What it returns allocates nothing.
  std::function<RateOfStep(const spec::ScheduleSpec&, double learning_rate, const spec::Course&)> make = {};
  /// Error(usage) for keys that do not fit together; empty: any do.
  std::function<void(const spec::ScheduleSpec&)> check = {};
};

/// What a loss is made of.
struct LossCall {
  Graph& graph;
  ValueId logits;                 // [rows,classes], or, for real values, [N,K]
  ValueId labels;                 // i32 [rows], -100 where a row does not count; f32 as the logits for real values
  const spec::LossSpec& options;  // [loss] of the recipe
  bool training = true;           // false: evaluation, which smoothes no labels
};

struct LossEntry {
  std::string name;            // "cross_entropy"
  std::string summary = {};    // a line
  std::vector<Key> keys = {};  // of [loss] that it reads, by their short names
  /// The loss of each row, f32 [rows]; 0 where the label does not count. Differentiable in the logits.
  std::function<ValueId(const LossCall&)> build = {};
};

struct Entries {
  std::vector<OptimizerEntry> optimizers;
  std::vector<ScheduleEntry> schedules;
  std::vector<LossEntry> losses;
  std::vector<MetricEntry> metrics;
  std::vector<AugmentationEntry> augmentations;
  std::vector<TaskEntry> tasks;

  /// Error(usage) where something is missing, there is an entry of that name, or another one has declared a key of the
  /// same name as something else.
  void add_optimizer(OptimizerEntry optimizer);
  void add_schedule(ScheduleEntry schedule);
  void add_loss(LossEntry loss);
  void add_metric(MetricEntry metric);
  void add_augmentation(AugmentationEntry augmentation);
  /// Its loss and its metrics have to be added before it.
  void add_task(TaskEntry task);
};

/// Those that come with weft. They are made of what stands above this folder: see weft/standard.
const Entries& standard_entries();

/// Error(usage) naming the tasks that there are, for any other name.
const TaskEntry& task_entry(const Entries& entries, const std::string& name);

template <typename Entry>
std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

/// Null where there is none of that name.
template <typename Entry>
const Entry* find_entry(const std::vector<Entry>& entries, const std::string& name) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& one) { return one.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

/// The keys that the entries declare, each once, as the first has it. `with_readers`: with the names of all that read
/// it, for tables whose `name` chooses one of them.
template <typename Entry>
std::vector<Key> declared_keys(const std::vector<Entry>& entries, bool with_readers = true) {
  std::vector<Key> keys;
  for (const Entry& entry : entries)
    for (const Key& key : entry.keys) {
      auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& one) { return one.name == key.name; });
      if (found == keys.end()) found = keys.insert(keys.end(), key);
      if (with_readers) found->read_by.push_back(entry.name);
    }
  return keys;
}

/// Null where the entry does not read it.
template <typename Entry>
const Key* find_key(const Entry& entry, const std::string& name) {
  return find_entry(entry.keys, name);
}

}  // namespace weft
