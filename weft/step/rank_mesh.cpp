#include "weft/step/rank_mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"

namespace weft::step {

namespace {

/// What the spec says, which is a mesh of `wanted` ranks, or of multiples of them.
struct Claim {
  std::string text;
  int64_t wanted = 1;
  bool takes_multiples = false;
  std::string otherwise = {};  // what else the user can set
};

std::string times_data(const spec::RunSpec& spec, std::string_view before) {
  return spec.mesh.data == 0 ? "" : fmt::format("{}mesh.data = {}", before, spec.mesh.data);
}

Claim claim_of(const spec::RunSpec& spec) {
  const int64_t data = spec.mesh.data, tensor = spec.mesh.tensor, pipeline = spec.mesh.pipeline;
  Claim claim{.text = "", .wanted = tensor * pipeline * std::max<int64_t>(data, 1), .takes_multiples = data == 0};
  if (tensor > 1 && pipeline > 1) {
    claim.text = fmt::format("mesh.tensor = {} times mesh.pipeline = {}{} are {} ranks", tensor, pipeline,
                             times_data(spec, " times "), claim.wanted);
    claim.otherwise = "mesh.tensor=1 or mesh.pipeline=1";
  } else if (pipeline > 1) {
    claim.text = fmt::format("mesh.pipeline = {}{}", pipeline, times_data(spec, " with "));
    claim.otherwise = "mesh.pipeline=1";
  } else if (tensor > 1 && data == 0) {
    claim.text = fmt::format("mesh.tensor = {}", tensor);
    claim.otherwise = "mesh.tensor=1";
  } else {
    claim.text = tensor == 1
                     ? fmt::format("mesh.data = {}", data)
                     : fmt::format("mesh.data = {} times mesh.tensor = {} are {} ranks", data, tensor, claim.wanted);
    claim.otherwise = "mesh.data=0 for as many as there are";
  }
  return claim;
}

}  // namespace

std::string RankStart::of(int64_t ranks) const {
  if (ranks == 1) return "start one process, without a launcher";
  return fmt::format("start {} ranks (`{}`)", ranks,
                     command.empty() ? fmt::format("weft launch -n {} -- ...", ranks)
                                     : fmt::format("mpirun -n {} {}", ranks, command));
}

void require_mesh(const spec::RunSpec& spec, int ranks, const RankStart& start) {
  const Claim claim = claim_of(spec);
  if (claim.takes_multiples ? ranks % claim.wanted == 0 : ranks == claim.wanted) return;
  fail(ErrorKind::usage, "{}, and {} part; {}{}{}", claim.text,
       ranks == 1 ? "1 rank takes" : fmt::format("{} ranks take", ranks), start.of(claim.wanted),
       claim.takes_multiples ? ", or a multiple of them" : "",
       start.sets_keys ? ", or set " + claim.otherwise : std::string());
}

int data_ranks(const spec::RunSpec& spec, int ranks) {
  return std::max(1, ranks / static_cast<int>(spec.mesh.tensor * spec.mesh.pipeline));
}

int data_rank(const spec::RunSpec& spec, int rank, int ranks) {
  return static_cast<int>(mesh_of(spec, ranks).coordinate(rank, kDataAxis));
}

Mesh mesh_of(const spec::RunSpec& spec, int ranks) {
  require_mesh(spec, ranks);
  return Mesh(
      {{kPipelineAxis, spec.mesh.pipeline}, {kDataAxis, data_ranks(spec, ranks)}, {kTensorAxis, spec.mesh.tensor}});
}

}  // namespace weft::step
