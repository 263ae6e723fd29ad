// The strategies among which a search chooses: all that the recipe leaves open and the run would take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/predict/strategy.h"
#include "weft/spec/run_spec.h"

namespace weft::search {

/// Why some strategies are none: what the run itself says of the first of them.
struct Refusal {
  std::string why;
  int64_t strategies = 0;
};

struct Candidates {
  std::vector<predict::Strategy> strategies;
  std::vector<Refusal> refused;
};

/// Of the ranks of `start`, which is the recipe as it stands. Keys that the recipe sets otherwise than by default stay
/// as they are: mesh.*, shard.zero, pipeline.*. Batches times `accumulate` stay, too: where one rank at a time has all
/// layers, a step's samples are computed in 1, 2, 4... batches that are accumulated; in a pipeline in as many
/// micro-batches. Whether a strategy can be is asked of the run's own checks (predict::recipe_by).
Candidates candidates_of(const Library& library, const spec::RunSpec& spec, const predict::Strategy& start);

/// The error that a run with this strategy would end with; empty: none.
std::string refusal_of(const Library& library, const spec::RunSpec& spec, const predict::Strategy& strategy);

/// "data 4 x tensor 2 x pipeline 1"
std::string mesh_text(const predict::Strategy& strategy);

}  // namespace weft::search
