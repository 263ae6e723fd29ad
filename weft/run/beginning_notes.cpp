#include "weft/run/beginning_notes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/graph/collective.h"
#include "weft/models/options.h"
#include "weft/program/arena_limit.h"
#include "weft/run/long_texts.h"
#include "weft/run/weights_file.h"
#include "weft/spec/run_spec.h"
#include "weft/step/rank_mesh.h"

namespace weft::run {

namespace {

/// The training step of one rank alone: where ranks share the layers, none of them need have the loss as one node.
Graph whole_step(const program::PreparedRun& run) {
  spec::RunSpec alone = run.spec;
  alone.mesh = {};
  alone.shard = {};
  return step::build_micro_batch(run.library, alone, program::model_input(run.run_data.description, run.shapes.front()))
      .graph;
}

/// Whether it is asked for, of classes, and the model brings a loss of its own.
bool ignores_label_smoothing(const program::PreparedRun& run, const Graph& step) {
  const auto& nodes = step.nodes();
  const bool smooths = spec::mixes(run.spec.augment) || std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
                         return node.op->name == "cross_entropy";
                       });
  const data::TargetKind targets = run.run_data.description.info.target_kind();
  return run.spec.loss.label_smoothing > 0 && targets != data::TargetKind::values && !smooths;
}

/// What there is to say about the data's files.
void note_files(const program::PreparedRun& run, const Graph& step, const RunOptions& options) {
  if (const std::string note = note_of_long_texts(step, *run.run_data.training); !note.empty()) options.note(note);
  std::vector<std::string> told = {run.run_data.training->info().note};
  for (const data::Dataset* evaluated : run.run_data.evaluated()) told.push_back(evaluated->info().note);
  for (size_t at = 0; at < told.size(); ++at)
    if (!told[at].empty() && std::find(told.begin(), told.begin() + static_cast<std::ptrdiff_t>(at), told[at]) ==
                                 told.begin() + static_cast<std::ptrdiff_t>(at))
      options.note(told[at]);
  for (const std::string& line : program::describe_missing_classes(run.run_data)) options.note(line);
  if (const int64_t uncached = run.run_data.training->uncached_bytes(); uncached > 0)
    options.note(fmt::format(
        "of the decoded pictures {} find no place in memory and are decoded in every epoch; pictures that `weft pack "
        "--size` has made smaller take less time",
        human_bytes(static_cast<double>(uncached))));
}

/// Weights that ranks along mesh.tensor do not share because their rows cannot be divided: each of a hundredth of the
/// model or more.
void note_whole_weights(const Library& library, const program::PreparedRun& run, const RunOptions& options) {
  constexpr double kLarge = 0.01;
  const int64_t ranks = run.spec.mesh.tensor;
  if (ranks == 1) return;
  const auto all = static_cast<double>(step::parameter_count(run.step.parameters));
  std::vector<std::string> whole;
  for (const models::ParameterSpec& parameter : run.step.parameters) {
    const auto found = run.step.shardings.find(parameter.name);
    Sharding sharding{.whole = parameter.shape};
    if (found != run.step.shardings.end()) sharding = found->second;
    const bool is_split = std::any_of(sharding.split.begin(), sharding.split.end(),
                                      [](const auto& axis) { return axis && axis->name == kTensorAxis; });
    const Shape& shape = sharding.whole;
    if (is_split || shape.rank() < 2 || shape[0] % ranks == 0) continue;
    if (static_cast<double>(shape.elements()) >= kLarge * all)
      whole.push_back(fmt::format("'{}' {}", parameter.name, to_string(shape)));
  }
  if (whole.empty()) return;
  const int64_t rows = run.run_data.description.info.classes, even = (rows + ranks - 1) / ranks * ranks;
  const std::string remedy = models::has_option(models::find_model(library.models, run.spec.model.name), "vocabulary")
                                 ? fmt::format("; --set model.vocabulary={} gives the vocabulary rows to divide", even)
                                 : "";
  options.note(
      fmt::format("mesh.tensor = {}: every rank has all of {}, since their rows cannot be divided evenly; shard.tensor "
                  "can name another dimension: the inputs of a layer, the columns of an embedding{}",
                  ranks, fmt::join(whole, " and "), remedy));
}

}  // namespace

void note_beginning(const Library& library, program::PreparedRun& run, const RunOptions& options) {
  if (!options.note) return;
  if (run.precision_times) options.note(program::describe(*run.precision_times));
  if (run.spec.precision == "f16" && !run.device->computes_fast(DType::f16))
    options.note(
        "precision f16: on this CPU kernels compute in f32 and store f16, for less memory with large batches; bf16 and "
        "f32 "
        "are faster");
  if (const int64_t cores = available_cores(); run.spec.virtual_ranks > 0 && run.spec.threads < cores)
    options.note(
        fmt::format("virtual_ranks = {}: each rank computes with {} of {} cores; --threads N takes more, and is part "
                    "of what decides the weights",
                    run.spec.virtual_ranks, run.spec.threads, cores));
  if (const int64_t grains = run.spec.balance.grains; grains > 0 && grains < 4 * run.training_share.shares)
    options.note(fmt::format(
        "balance.grains = {} on {} ranks: shares can only change by large steps; {} or more follow speeds better",
        grains, run.training_share.shares, 4 * run.training_share.shares));
  const bool shares_layers = run.spec.mesh.tensor > 1 || run.spec.mesh.pipeline > 1;
  const std::optional<Graph> whole = shares_layers ? std::optional(whole_step(run)) : std::nullopt;
  const Graph& step = whole ? *whole : run.step.graph;
  note_files(run, step, options);
  note_whole_weights(library, run, options);
  if (!run.spec.init.empty())
    if (const std::string note =
            note_of_other_classes(run.spec, run.run_data.description.info, describe_weights(run.spec.init));
        !note.empty())
      options.note(note);
  if (run.spec.schedule.name == "plateau" && run.spec.schedule.monitor.starts_with("test_"))
    options.note(
        fmt::format("schedule.monitor = '{}' lets the test data decide over the training, so that they no longer "
                    "tell how well it does on new data; set validation=0.1 and schedule.monitor=validation_{}",
                    run.spec.schedule.monitor, run.spec.schedule.monitor.substr(5)));
  for (const std::string& key :
       spec::keys_without_effect(run.spec, run.run_data.description.info.target_kind(), run.library))
    options.note(key + " has no effect");
  if (run.spec.shard.experts == "data" && step::data_ranks(run.spec, comm::number_of(run.ranks)) == 1)
    options.note("shard.experts = 'data' with one rank along mesh.data has no effect");
  const std::string twice = program::describe_recompute(run.training.compiled(run.largest()), run.spec);
  if (!twice.empty()) options.note(twice);
  const std::string offloaded = program::describe_offload(run.training.compiled(run.largest()), run.spec);
  if (!offloaded.empty()) options.note(offloaded);
  if (ignores_label_smoothing(run, step))
    options.note(fmt::format("loss.label_smoothing = {} with '{}', which has a loss of its own, has no effect",
                             run.spec.loss.label_smoothing, run.spec.model.name));
}

}  // namespace weft::run
