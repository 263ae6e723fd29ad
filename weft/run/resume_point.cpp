#include "weft/run/resume_point.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/comm/on_all_ranks.h"
#include "weft/program/shared_state.h"
#include "weft/run/checkpoint/reader.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/initial_weights.h"
#include "weft/run/whitening.h"
#include "weft/spec/recipe.h"
#include "weft/step/compression.h"
#include "weft/step/sharded_states.h"
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
  const auto seed = static_cast<uint64_t>(run.spec.seed);
  state = step::initial_state(run.step, seed, comm::rank_of(run.ranks));
  if (!run.spec.init.empty()) {
    from_files = true;
    if (!comm::is_first(run.ranks)) return;
    point.initial_weights = load_weights(state, run.step.parameters, run.spec.init, load_options_of(run.spec));
  } else {
    from_files = start_from_images(state, run);
  }
  if (from_files) step::start_slots(run.step, state, comm::rank_of(run.ranks));
}

/// Of ranks that share states: from the file, or drawn where it has none, one tensor after the other.
void start_parts_from_file(ResumePoint& point, const program::PreparedRun& run) {
  std::optional<InitialWeightsReader> file;
  std::vector<program::SourceTensor> tensors;
  std::map<std::string, const models::ParameterSpec*> parameters;
  comm::on_all_ranks(run.ranks, "initial weights", [&] {
    if (!comm::is_first(run.ranks)) return;
    file.emplace(run.step.parameters, run.spec.init, load_options_of(run.spec));
    point.initial_weights = file->weights();
    for (const models::ParameterSpec& parameter : run.step.parameters) {
      tensors.push_back({parameter.name, {DType::f32, parameter.shape, {}}});
      parameters[parameter.name] = &parameter;
    }
  });
  const auto read = [&](const std::string& name) {
    return file->has(name) ? file->read(name)
                           : models::initialize(*parameters.at(name), static_cast<uint64_t>(run.spec.seed));
  };
  point.state = program::take_first_tensors(*run.ranks, tensors, read, run.step.shardings, run.step.mesh);
  step::start_slots(run.step, point.state, run.ranks->rank());
}

/// The first rank's weights, with the slots that belong to them: of what ranks share each has another part.
void take_first_weights(const program::PreparedRun& run, State& state) {
  if (run.step.shardings.empty()) return program::take_first_state(run.ranks, state);
  for (const step::SlotSpec& slot : run.step.slots) state.remove(slot.name);
  State drawn;  // parts that follow from the seed alone
  for (const std::string& name : state.names()) {
    if (!step::is_shared(run.step.shardings, name)) continue;
    drawn.share(name, state, name);
    state.remove(name);
  }
  program::take_first_state(run.ranks, state, run.step.shardings, run.step.mesh);
  for (const std::string& name : drawn.names()) state.share(name, drawn, name);
  step::start_slots(run.step, state, run.ranks->rank());
}

}  // namespace

PartsOfCheckpoint read_in_parts(const program::PreparedRun& run, const std::filesystem::path& checkpoint) {
  std::optional<CheckpointReader> reader;
  std::vector<program::SourceTensor> tensors;
  const std::string manifest = comm::decided_by_first(run.ranks, "checkpoint", [&] {
    reader.emplace(checkpoint);
    for (const std::string& name : reader->names()) tensors.push_back({name, reader->type(name)});
    return print_manifest(reader->manifest());
  });
  PartsOfCheckpoint parts{.state = {}, .manifest = parse_manifest(manifest, checkpoint.string())};
  parts.state = program::take_first_tensors(
      *run.ranks, tensors, [&](const std::string& name) { return reader->read(name); }, run.step.shardings,
      run.step.mesh);
  return parts;
}

ResumePoint resume_point_of(const program::PreparedRun& run, const std::filesystem::path& checkpoint) {
  ResumePoint point;
  bool from_files = true;
  if (checkpoint.empty()) {
    if (!run.spec.init.empty() && !run.step.shardings.empty()) {
      start_parts_from_file(point, run);
      from_files = false;  // all have them
    } else {
      comm::on_all_ranks(run.ranks, "initial weights", [&] { start(point, run, from_files); });
    }
    point.manifest.spec_hash = spec::spec_hash(run.spec, run.library);
    point.manifest.seed = run.spec.seed;
    if (from_files) take_first_weights(run, point.state);
  } else if (!run.step.shardings.empty()) {
    PartsOfCheckpoint parts = read_in_parts(run, checkpoint);
    point.state = std::move(parts.state);
    point.manifest = std::move(parts.manifest);
  } else {
    const std::string manifest = comm::decided_by_first(run.ranks, "checkpoint", [&] {
      Checkpoint read = read_checkpoint(checkpoint);
      point.state = std::move(read.state);
      return print_manifest(read.manifest);
    });
    point.manifest = parse_manifest(manifest, checkpoint.string());
    program::take_first_state(run.ranks, point.state);
  }
  step::renew_compression_slots(run.step.slots, point.state);
  step::start_shard_sums(run.step, point.state);
  return point;
}

}  // namespace weft::run
