#include "weft/step/rank_mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"

namespace weft::step {

namespace {

std::string counted(int ranks) { return ranks == 1 ? "1 rank takes" : fmt::format("{} ranks take", ranks); }

void require_pipeline_mesh(const spec::RunSpec& spec, int ranks) {
  const int64_t pipeline = spec.mesh.pipeline, data = std::max<int64_t>(spec.mesh.data, 1);
  const bool fits = spec.mesh.data == 0 ? ranks % pipeline == 0 : data * pipeline == ranks;
  if (fits) return;
  fail(ErrorKind::usage,
       "mesh.pipeline = {}{}, and {} take part; start {} ranks (`weft launch -n {} -- ...`){}, or set mesh.pipeline=1",
       pipeline, spec.mesh.data == 0 ? "" : fmt::format(" with mesh.data = {}", data),
       ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks), data * pipeline, data * pipeline,
       spec.mesh.data == 0 ? ", or a multiple of them" : "");
}

/// Layers that are divided and shared.
void require_both(const spec::RunSpec& spec, int ranks) {
  const int64_t stage = spec.mesh.tensor * spec.mesh.pipeline, data = spec.mesh.data;
  const int64_t wanted = stage * std::max<int64_t>(data, 1);
  if (data == 0 ? ranks % stage == 0 : wanted == ranks) return;
  fail(ErrorKind::usage,
       "mesh.tensor = {} times mesh.pipeline = {}{} are {} ranks, and {} part; start {} ranks (`weft launch -n {} -- "
       "...`){}, or set mesh.tensor=1 or mesh.pipeline=1",
       spec.mesh.tensor, spec.mesh.pipeline, data == 0 ? "" : fmt::format(" times mesh.data = {}", data), wanted,
       counted(ranks), wanted, wanted, data == 0 ? ", or a multiple of them" : "");
}

}  // namespace

void require_mesh(const spec::RunSpec& spec, int ranks) {
  const int64_t data = spec.mesh.data, tensor = spec.mesh.tensor;
  if (tensor > 1 && spec.mesh.pipeline > 1) return require_both(spec, ranks);
  if (spec.mesh.pipeline > 1) return require_pipeline_mesh(spec, ranks);
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
