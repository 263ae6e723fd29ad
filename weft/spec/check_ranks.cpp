#include "weft/spec/check_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "weft/base/error.h"
#include "weft/spec/course.h"

namespace weft::spec {

namespace {

/// Shards stand for batches that are accumulated, too.
void check_virtual_ranks(const RunSpec& spec) {
  const int64_t shards = spec.virtual_ranks;
  if (shards == 0) return;
  if (!std::has_single_bit(static_cast<uint64_t>(shards)))
    fail(ErrorKind::usage, "virtual_ranks = {} is no power of two, as the tree of its sums wants it; choose {} or {}",
         shards, std::bit_floor(static_cast<uint64_t>(shards)), std::bit_ceil(static_cast<uint64_t>(shards)));
  for (const Stage& stage : stages_of(spec)) {
    if (stage.accumulate > 1)
      fail(ErrorKind::usage,
           "accumulate = {} with virtual_ranks = {}: shards are summed as accumulated batches are; set batch = {}, "
           "virtual_ranks = {} and accumulate = 1, which takes as much memory",
           stage.accumulate, shards, stage.batch * stage.accumulate,
           shards * static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(stage.accumulate))));
    if (stage.batch % shards != 0)
      fail(ErrorKind::usage, "batch = {} cannot be divided into {} virtual ranks; choose {} or another number of them",
           stage.batch, shards, (stage.batch / shards + 1) * shards);
  }
  if (spec.compression.method != "none")
    fail(ErrorKind::usage,
         "compression.method = '{}' with virtual_ranks = {}: what is left out would depend on the number of processes; "
         "leave one of the two away",
         spec.compression.method, shards);
  if (spec.batch_norm == "synchronised")
    fail(ErrorKind::usage,
         "batch_norm = 'synchronised' with virtual_ranks = {}: shards are computed one after the other, each with its "
         "own mean and deviation; leave one of the two away",
         shards);
}

void check_averaging(const RunSpec& spec) {
  const AveragingSpec& averaging = spec.averaging;
  if (averaging.period == 0) {
    if (averaging != AveragingSpec{})
      fail(ErrorKind::usage,
           "[averaging] without averaging.period; set it to the steps that each rank trains on its own, such as 8");
    return;
  }
  if (spec.virtual_ranks > 0)
    fail(ErrorKind::usage,
         "averaging.period = {} with virtual_ranks = {}: ranks that train on their own are not one result at any "
         "scale; leave one of the two away",
         averaging.period, spec.virtual_ranks);
  if (spec.compression.method != "none")
    fail(ErrorKind::usage,
         "compression.method = '{}' with averaging.period = {}: no gradients are exchanged; leave one of the two away",
         spec.compression.method, averaging.period);
  if (spec.batch_norm == "synchronised")
    fail(ErrorKind::usage,
         "averaging.period = {} with batch_norm = 'synchronised': between two means ranks exchange nothing; leave one "
         "of the two away",
         averaging.period);
  if (scales_loss(spec))
    fail(ErrorKind::usage,
         "averaging.period = {} with a loss that is scaled: ranks would skip different steps; set "
         "loss_scaling.mode=none, or precision=bf16",
         averaging.period);
}

/// Of ranks that share layers.
void check_tensor(const RunSpec& spec) {
  const int64_t tensor = spec.mesh.tensor;
  if (tensor == 1) return;
  if (spec.virtual_ranks > 0)
    fail(ErrorKind::usage,
         "mesh.tensor = {} with virtual_ranks = {}: sums over parts of layers have no order that any number of ranks "
         "could keep; leave one of the two away",
         tensor, spec.virtual_ranks);
  if (spec.averaging.period > 0)
    fail(ErrorKind::usage,
         "mesh.tensor = {} with averaging.period = {}: ranks that train on their own need all of the layers; leave one "
         "of the two away",
         tensor, spec.averaging.period);
  if (spec.compression.method != "none")
    fail(ErrorKind::usage,
         "mesh.tensor = {} with compression.method = '{}': what is left out is of whole gradients; leave one of the "
         "two away",
         tensor, spec.compression.method);
}

/// Of experts that ranks divide.
void check_experts(const RunSpec& spec) {
  if (spec.shard.experts == "whole") return;
  const auto refuse = [](const std::string& other, const char* why) {
    fail(ErrorKind::usage, "shard.experts = 'data' with {}: {}; leave one of the two away", other, why);
  };
  if (spec.virtual_ranks > 0)
    refuse(fmt::format("virtual_ranks = {}", spec.virtual_ranks),
           "the result would depend on how many ranks divide the tokens");
  if (spec.balance.grains > 0)
    refuse(fmt::format("balance.grains = {}", spec.balance.grains),
           "ranks would wait for the tokens of others that take more grains");
  if (spec.averaging.period > 0)
    refuse(fmt::format("averaging.period = {}", spec.averaging.period),
           "ranks that train on their own need all experts");
}

void check_shard(const RunSpec& spec) {
  check_tensor(spec);
  check_experts(spec);
  const int64_t zero = spec.shard.zero;
  if (zero == 0) return;
  if (spec.averaging.period > 0)
    fail(ErrorKind::usage,
         "shard.zero = {} with averaging.period = {}: ranks that train on their own need all states; leave one of the "
         "two away",
         zero, spec.averaging.period);
  if (spec.compression.method != "none")
    fail(ErrorKind::usage,
         "shard.zero = {} with compression.method = '{}': what is left out is of whole gradients; leave one of the two "
         "away",
         zero, spec.compression.method);
}

/// What a pipeline cannot be combined with.
void check_pipeline(const RunSpec& spec) {
  if (spec.mesh.pipeline <= 1) return;
  const auto refuse = [&](const std::string& other, const char* why) {
    fail(ErrorKind::usage, "mesh.pipeline = {} with {}: {}; leave one of the two away", spec.mesh.pipeline, other, why);
  };
  if (spec.shard.zero > 2)
    fail(ErrorKind::usage,
         "mesh.pipeline = {} with shard.zero = {}: each micro-batch would gather the weights of its layers anew; set "
         "shard.zero=2, with which the ranks of a stage share the optimiser's states and the sums of gradients",
         spec.mesh.pipeline, spec.shard.zero);
  if (spec.virtual_ranks > 0)
    refuse(fmt::format("virtual_ranks = {}", spec.virtual_ranks), "micro-batches take the place of shards");
  if (spec.averaging.period > 0)
    refuse(fmt::format("averaging.period = {}", spec.averaging.period), "no rank can train on its own");
  if (spec.compression.method != "none")
    refuse(fmt::format("compression.method = '{}'", spec.compression.method),
           "what stages send each other is not compressed");
  if (accumulates(spec))
    refuse("accumulate",
           "the micro-batches of pipeline.micro_batches are accumulated; give a larger batch and more "
           "of them");
  if (stages_of(spec).size() > 1)
    refuse("batches or images that change in size during the run", "the layers of a rank would change with them");
}

/// The batch that comes nearest above, or the number of grains nearest below, that goes with the other.
std::string fitting_grains(int64_t batch, int64_t grains) {
  int64_t below = std::min(grains, batch);
  while (batch % below != 0) --below;
  return fmt::format("balance.grains={}, or a batch of {}", below, (batch / grains + 1) * grains);
}

/// Ranks take different numbers of grains, and exchange only after their last.
void check_balance(const RunSpec& spec) {
  const int64_t grains = spec.balance.grains;
  if (grains == 0) return;
  for (const Stage& stage : stages_of(spec)) {
    if (stage.accumulate > 1)
      fail(ErrorKind::usage,
           "accumulate = {} with balance.grains = {}: grains are summed as accumulated batches are; set batch = {}, "
           "balance.grains = {} and accumulate = 1, which takes as much memory",
           stage.accumulate, grains, stage.batch * stage.accumulate, grains * stage.accumulate);
    if (stage.batch % grains != 0)
      fail(ErrorKind::usage, "batch = {} cannot be divided into {} equal grains; set {}", stage.batch, grains,
           fitting_grains(stage.batch, grains));
  }
  if (spec.virtual_ranks > 0)
    fail(ErrorKind::usage,
         "balance.grains = {} with virtual_ranks = {}: the bits of virtual ranks need the same shards on each rank; "
         "leave one of the two away",
         grains, spec.virtual_ranks);
  for (const auto& [name, ranks] :
       {std::pair("mesh.tensor", spec.mesh.tensor), std::pair("mesh.pipeline", spec.mesh.pipeline)})
    if (ranks > 1)
      fail(ErrorKind::usage,
           "balance.grains = {} with {} = {}: ranks that compute the same samples together cannot take other shares of "
           "them; leave one of the two away",
           grains, name, ranks);
  if (spec.averaging.period > 0)
    fail(ErrorKind::usage,
         "balance.grains = {} with averaging.period = {}: means of weights count all ranks alike, however much each of "
         "them has trained on; leave one of the two away",
         grains, spec.averaging.period);
  if (spec.shard.zero >= 2)
    fail(ErrorKind::usage,
         "balance.grains = {} with shard.zero = {}: ranks that share sums of gradients exchange them after each grain, "
         "of which some ranks have more than others; set shard.zero=1, or leave balance.grains away",
         grains, spec.shard.zero);
  if (spec.batch_norm == "synchronised")
    fail(ErrorKind::usage,
         "balance.grains = {} with batch_norm = 'synchronised': grains are computed one after the other, each with its "
         "own mean and deviation; leave one of the two away",
         grains);
}

}  // namespace

void check_ranks(const RunSpec& spec) {
  check_virtual_ranks(spec);
  check_averaging(spec);
  check_shard(spec);
  check_pipeline(spec);
  check_balance(spec);
}

}  // namespace weft::spec
