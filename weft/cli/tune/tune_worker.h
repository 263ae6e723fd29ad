// weft tune --serve and weft tune worker: trials of a study on other hosts.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "weft/cli/command.h"
#include "weft/tune/trials/trial_server.h"

namespace weft::cli {

inline constexpr const char* kLostAfterHelp =
    "How long the other end may be silent before it counts as lost, such as 1m; default: 15s";

/// Listens at `address`, and says how workers get there. `lost_after` may be empty. Error(usage).
std::unique_ptr<tune::WorkerServer> serve_workers(const Library& library, const tune::Study& study,
                                                  const std::string& address, const std::string& lost_after,
                                                  const std::string& program);

/// The command `worker` of `tune`.
void add_tune_worker(CLI::App& tune, Action& action, const Library& library, const std::string& program);

}  // namespace weft::cli
