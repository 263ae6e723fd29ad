// The workers on other hosts of a study.
#pragma once

#include <memory>

#include "weft/library/library.h"
#include "weft/tune/study/study.h"
#include "weft/tune/training/worker_server.h"

namespace weft::tune {

/// Listens for workers that have the study's token, weft of this version and its data. The token is the file `token` of
/// the study's folder, made where there is none. Error(io) where nobody can listen there, errors of the data.
std::unique_ptr<WorkerServer> serve_study(const Library& library, const Study& study, const Address& address,
                                          double silence_seconds = kSilenceSeconds);

}  // namespace weft::tune
