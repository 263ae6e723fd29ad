#include "weft/step/rank_mesh.h"

#include <fmt/format.h>

#include "weft/base/error.h"

namespace weft::step {

namespace {

std::string counted(int ranks) { return ranks == 1 ? "1 rank takes" : fmt::format("{} ranks take", ranks); }

}  // namespace

void require_mesh(const spec::RunSpec& spec, int ranks) {
  const int64_t data = spec.mesh.data, tensor = spec.mesh.tensor;
  if (tensor == 1) {
    if (data == 0 || data == ranks) return;
    fail(ErrorKind::usage,
         "mesh.data = {}, and {} take part; start {} ranks (`weft launch -n {} -- ...`), or set mesh.data=0 for as "
         "many as there are",
         data, ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks), data, data);
  }
  if (data == 0) {
    if (ranks % tensor == 0) return;
    fail(ErrorKind::usage,
         "mesh.tensor = {}, and {} part, which is no multiple of it; start {} ranks (`weft launch -n {} -- ...`), or "
         "set mesh.tensor=1",
         tensor, counted(ranks), tensor, tensor);
  }
  if (data * tensor == ranks) return;
  fail(ErrorKind::usage,
       "mesh.data = {} times mesh.tensor = {} are {} ranks, and {} part; start {} ranks (`weft launch -n {} -- ...`), "
       "or set mesh.data=0 for as many as there are",
       data, tensor, data * tensor, counted(ranks), data * tensor, data * tensor);
}

int data_ranks(const spec::RunSpec& spec, int ranks) { return ranks / static_cast<int>(spec.mesh.tensor); }

Mesh mesh_of(const spec::RunSpec& spec, int ranks) {
  require_mesh(spec, ranks);
  return Mesh({{kDataAxis, data_ranks(spec, ranks)}, {kTensorAxis, spec.mesh.tensor}});
}

}  // namespace weft::step
