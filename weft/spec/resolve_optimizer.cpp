#include "weft/spec/resolve_optimizer.h"

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft::spec {

namespace {

/// That of the optimiser or, where it reads none, of the first that does: older specs say it, too.
double default_momentum(const OptimizerEntry& optimizer, const Entries& entries) {
  const Key* key = find_key(optimizer, "momentum");
  for (const OptimizerEntry& other : entries.optimizers)
    if (key == nullptr) key = find_key(other, "momentum");
  return key == nullptr ? 0 : std::get<double>(key->value);
}

}  // namespace

void resolve_optimizer(OptimizerSpec& optimizer, const Entries& entries) {
  const OptimizerEntry* entry = find_entry(entries.optimizers, optimizer.name);
  if (entry == nullptr)
    fail(ErrorKind::usage, "there is no optimizer '{}'{}", optimizer.name,
         suggestion(optimizer.name, names_of(entries.optimizers)));
  if (optimizer.learning_rate == 0) optimizer.learning_rate = entry->learning_rate;
  if (optimizer.weight_decay < 0) optimizer.weight_decay = entry->weight_decay;
  if (optimizer.momentum < 0) optimizer.momentum = default_momentum(*entry, entries);
  for (const auto& [name, group] : optimizer.groups)
    if (group.match.empty())
      fail(ErrorKind::usage,
           "optimizer.groups.{0} matches nothing: it has no match; set optimizer.groups.{0}.match to a glob such as "
           "'fc.*'",
           name);
}

}  // namespace weft::spec
