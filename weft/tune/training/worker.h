// The worker's side: asks a tuner on another host for trials, trains them here, and sends back what came of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "weft/library/library.h"
#include "weft/tune/training/address.h"
#include "weft/tune/training/handshake.h"

namespace weft::tune {

struct WorkerOptions {
  Address tuner;
  std::string token;
  int64_t trials = 0;            // at a time; 0: as many as the cores have room for
  std::filesystem::path folder;  // for runs while they train, made where it is not there
  std::string program;           // the path of this program
  double silence_seconds = kSilenceSeconds;
};

struct WorkerHooks {
  std::function<void(const std::string&)> note = {};  // a line for the user
  std::function<bool()> stop_requested = {};
};

struct WorkerOutcome {
  int64_t trials = 0;    // that were sent back
  std::string farewell;  // why the tuner has nothing more to do; empty where this worker was stopped
};

/// Until the tuner says that there is nothing left, or a stop is requested: then running trials make checkpoints and go
/// to other workers. Error(communication) where the tuner cannot be reached, knows another token, refuses this worker,
/// or is gone. Error(usage), Error(io), Error(data) where the data of the study are not here, or are others.
WorkerOutcome work_for(const Library& library, const WorkerOptions& options, const WorkerHooks& hooks);

}  // namespace weft::tune
