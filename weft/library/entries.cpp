#include "weft/library/entries.h"

#include <fmt/ranges.h>

#include "weft/base/error.h"

namespace weft {

namespace {

/// Keys of one table mean the same for all that read them; only their defaults may differ.
template <typename Entry>
void require_fit(const char* kind, const std::vector<Entry>& entries, const Entry& entry) {
  if (entry.name.empty()) fail(ErrorKind::usage, "the {} '' is not complete: it needs a name", kind);
  if (find_entry(entries, entry.name) != nullptr)
    fail(ErrorKind::usage, "there is {} '{}' already; choose another name", kind, entry.name);
  for (const Key& key : entry.keys)
    for (const Entry& other : entries)
      if (const Key* known = find_key(other, key.name);
          known != nullptr && (known->value.index() != key.value.index() || known->low != key.low ||
                               known->high != key.high || known->choices != key.choices))
        fail(ErrorKind::usage, "{} '{}' declares the key '{}' otherwise than '{}' does; choose another name for it",
             kind, entry.name, key.name, other.name);
}

}  // namespace

void Entries::add_optimizer(OptimizerEntry optimizer) {
  require_fit("optimizer", optimizers, optimizer);
  if (!optimizer.build)
    fail(ErrorKind::usage, "the optimizer '{}' is not complete: it needs a build function", optimizer.name);
  optimizers.push_back(std::move(optimizer));
}

void Entries::add_schedule(ScheduleEntry schedule) {
  require_fit("schedule", schedules, schedule);
  if (!schedule.make)
    fail(ErrorKind::usage, "the schedule '{}' is not complete: it needs a make function", schedule.name);
  schedules.push_back(std::move(schedule));
}

void Entries::add_loss(LossEntry loss) {
  require_fit("loss", losses, loss);
  if (!loss.build) fail(ErrorKind::usage, "the loss '{}' is not complete: it needs a build function", loss.name);
  losses.push_back(std::move(loss));
}

void Entries::add_metric(MetricEntry metric) {
  require_fit("metric", metrics, metric);
  const bool adds_up = metric.build && !metric.outputs.empty();
  if (!metric.value && !adds_up)
    fail(ErrorKind::usage, "the metric '{}' is not complete: it needs a value function, or outputs that build() adds",
         metric.name);
  if (metric.label.empty()) metric.label = metric.name;
  metrics.push_back(std::move(metric));
}

void Entries::add_augmentation(AugmentationEntry augmentation) {
  require_fit("augmentation", augmentations, augmentation);
  if (!augmentation.make)
    fail(ErrorKind::usage, "the augmentation '{}' is not complete: it needs a make function", augmentation.name);
  augmentations.push_back(std::move(augmentation));
}

void Entries::add_task(TaskEntry task) {
  if (task.name.empty()) fail(ErrorKind::usage, "the task '' is not complete: it needs a name");
  if (find_entry(tasks, task.name) != nullptr)
    fail(ErrorKind::usage, "there is a task '{}' already; choose another name", task.name);
  if (!task.loss.empty() && find_entry(losses, task.loss) == nullptr)
    fail(ErrorKind::usage, "the task '{}' has the loss '{}', which there is not; add it before the task", task.name,
         task.loss);
  for (const std::string& metric : task.metrics)
    if (find_entry(metrics, metric) == nullptr)
      fail(ErrorKind::usage, "the task '{}' has the metric '{}', which there is not; add it before the task", task.name,
           metric);
  if (task.decided_by != "loss" &&
      std::find(task.metrics.begin(), task.metrics.end(), task.decided_by) == task.metrics.end())
    fail(ErrorKind::usage, "the task '{}' is decided by '{}', which is none of its metrics; add it to them", task.name,
         task.decided_by);
  tasks.push_back(std::move(task));
}

const TaskEntry& task_entry(const Entries& entries, const std::string& name) {
  if (const TaskEntry* task = find_entry(entries.tasks, name)) return *task;
  fail(ErrorKind::usage, "there is no task '{}'; known: {}. A program that adds it to its library can open such data",
       name, fmt::join(names_of(entries.tasks), ", "));
}

}  // namespace weft
