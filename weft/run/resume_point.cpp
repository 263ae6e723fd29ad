#include "weft/run/resume_point.h"

#include "weft/comm/on_all_ranks.h"
#include "weft/program/shared_state.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/initial_weights.h"
#include "weft/run/whitening.h"
#include "weft/spec/recipe.h"
#include "weft/step/compression.h"
#include "weft/step/virtual_ranks.h"

namespace weft::run {

namespace {

/// Weights that depend on the training images; whether there are any.
bool start_from_images(State& state, const program::PreparedRun& run) {
  data::LoaderOptions as_they_are = program::evaluation_loader_options(run.spec, run.run_data.description);
  as_they_are.batch = 1;
  as_they_are.workers = 0;
  const data::Loader images(*run.run_data.training, as_they_are);
  return start_whitening(state, run.step.parameters, images, static_cast<uint64_t>(run.spec.seed));
}

/// Sets `from_files` where it is not the seed alone that decides.
void start(ResumePoint& point, const program::PreparedRun& run, bool& from_files) {
  State& state = point.state;
  state = step::initial_state(run.step, static_cast<uint64_t>(run.spec.seed));
  if (!run.spec.init.empty()) {
    from_files = true;
    if (!comm::is_first(run.ranks)) return;
    point.initial_weights = load_weights(state, run.step.parameters, run.spec.init, load_options_of(run.spec));
  } else {
    from_files = start_from_images(state, run);
  }
  if (from_files) step::start_slots(run.step, state);
}

}  // namespace

ResumePoint resume_point_of(const program::PreparedRun& run, const std::filesystem::path& checkpoint) {
  ResumePoint point;
  bool from_files = true;
  if (checkpoint.empty()) {
    comm::on_all_ranks(run.ranks, "initial weights", [&] { start(point, run, from_files); });
    point.manifest.spec_hash = spec::spec_hash(run.spec, run.library);
    point.manifest.seed = run.spec.seed;
  } else {
    const std::string manifest = comm::decided_by_first(run.ranks, "checkpoint", [&] {
      Checkpoint read = read_checkpoint(checkpoint);
      point.state = std::move(read.state);
      return print_manifest(read.manifest);
    });
    point.manifest = parse_manifest(manifest, checkpoint.string());
  }
  if (from_files) program::take_first_state(run.ranks, point.state);
  step::renew_compression_slots(run.step.slots, point.state);
  step::start_shard_sums(run.step, point.state);
  return point;
}

}  // namespace weft::run
