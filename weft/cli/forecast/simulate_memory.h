// What `weft simulate` says where a rank has too little memory for its step.
#pragma once

#include <string>

#include "weft/library/library.h"
#include "weft/machines/cluster_file.h"
#include "weft/models/model.h"
#include "weft/spec/run_spec.h"

namespace weft::cli {

/// A model and its ranks, as they were simulated.
struct SimulatedModel {
  std::string name, cluster;  // as the user names them
  const spec::RunSpec& spec;
  const models::ModelInput& input;
  int64_t batch = 0;  // of all ranks
  int ranks = 1;
};

/// The least memory that would do, and how to get by with what the cluster's device has.
std::string least_memory_text(const Library& library, const SimulatedModel& model,
                              const machines::ClusterFile& cluster);

}  // namespace weft::cli
