#include "weft/train/saving.h"

#include "weft/base/clock.h"
#include "weft/comm/exchange.h"

namespace weft::train {

Saving::Saving(const spec::CheckpointSpec& spec, const Hooks& hooks, comm::Communicator* ranks, SharedErrors& errors)
    : spec_(spec), hooks_(hooks), ranks_(ranks), errors_(errors), last_(steady_seconds()) {}

bool Saving::is_due_on_this_rank(const step::Position& position) const {
  if (noted_) return true;
  if (spec_.every_steps > 0 && position.step % spec_.every_steps == 0) return true;
  return spec_.every_seconds > 0 && steady_seconds() - last_ >= spec_.every_seconds;
}

bool Saving::is_due(const step::Position& position) {
  double due = is_due_on_this_rank(position) ? 1 : 0;
  if ((errors_.exist() || hooks_.saves_together) && spec_.every_seconds > 0)
    comm::all_reduce_max(*ranks_, {&due, 1}, "time of the next checkpoint");
  return due > 0;
}

void Saving::note_due(const step::Position& position) { noted_ = is_due_on_this_rank(position); }

void Saving::save(const step::Position& position) {
  errors_.average();
  try {
    if (hooks_.save) hooks_.save(position);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numeric || ranks_ == nullptr) throw;
    refused_ = error;
  }
  last_ = steady_seconds();
  noted_ = false;
}

void Saving::require_none_refused(const std::string& where) const {
  if (refused_) throw Error(refused_->kind(), refused_->what() + where);
}

}  // namespace weft::train
