// The training step of a recipe or a model of the zoo, compiled for a device that is not here.
#pragma once

#include <cstdint>
#include <string>

#include "weft/library/library.h"
#include "weft/machines/cluster_file.h"
#include "weft/machines/roofline.h"
#include "weft/models/model.h"
#include "weft/simulate/step_program.h"
#include "weft/spec/run_spec.h"

namespace weft::simulate {

struct GraphStepOptions {
  int ranks = 1;
  machines::RooflineOptions roofline = {};
  int64_t bucket_bytes = 0;               // see passes::Ranks: 0: as is predicted to be best, 1: none
  double bytes_factor = 1;                // of what is exchanged, as StepOptions has it
  bool defers_updates = true;             // where a gradient is late its update waits for the next step
  bool gathers_rows = true;               // of large layers, in place of reducing gradients, where that pays
  std::vector<std::string> without = {};  // passes
};

struct GraphStep {
  StepProgram program;
  double parameters = 0;
};

/// A key of the spec that makes the ranks' work another than what is simulated here, with its value:
/// "mesh.tensor=4". Empty: there is none.
std::string unsimulated_key(const spec::RunSpec& spec);

/// `spec.batch`, and the batch of the input, are those of one rank. Error(usage) where the cluster names no device.
GraphStep compile_for(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input,
                      const machines::ClusterFile& cluster, const GraphStepOptions& options);

/// What an all-reduce over so many ranks of the cluster costs, as passes ask it.
passes::Ranks ranks_of(const machines::ClusterFile& cluster, int ranks, int64_t bucket_bytes, double bytes_factor = 1);

}  // namespace weft::simulate
