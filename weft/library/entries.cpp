#include "weft/library/entries.h"

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

}  // namespace weft
