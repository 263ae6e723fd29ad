// When a checkpoint is due, and what happens to one that cannot be made.
#pragma once

#include <optional>
#include <string>

#include "weft/base/error.h"
#include "weft/comm/communicator.h"
#include "weft/spec/run_spec.h"
#include "weft/step/metrics.h"
#include "weft/train/fit.h"
#include "weft/train/ranks/shared_errors.h"

namespace weft::train {

/// Of one run of fit(). Keeps references to all that it is given.
class Saving {
 public:
  Saving(const spec::CheckpointSpec& spec, const Hooks& hooks, comm::Communicator* ranks, SharedErrors& errors);

  /// By steps or seconds, now or since note_due(). Where all ranks have something to do before a checkpoint, they
  /// decide together, and all of them have to ask.
  bool is_due(const step::Position& position);
  /// Remembers that a checkpoint is due now, where it has to wait for the other ranks.
  void note_due(const step::Position& position);

  /// Calls the hook. Error(numeric) of a state that is not finite is kept on one of several ranks: the loss of the next
  /// step, which all of them see, says whose gradient it was.
  void save(const step::Position& position);
  /// Error(numeric) where a checkpoint was refused, with `where` behind its message.
  void require_none_refused(const std::string& where = "") const;

 private:
  bool is_due_on_this_rank(const step::Position& position) const;

  const spec::CheckpointSpec& spec_;
  const Hooks& hooks_;
  comm::Communicator* const ranks_;
  SharedErrors& errors_;
  double last_;  // steady seconds
  bool noted_ = false;
  std::optional<Error> refused_ = {};
};

}  // namespace weft::train
