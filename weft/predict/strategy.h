// How the ranks of a run divide its steps among themselves, and what each of them does to keep to its memory. Plain
// data; all of it but the ranks are keys of a recipe, by which spec.toml keeps it for --resume.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/library/entries.h"
#include "weft/spec/run_spec.h"

namespace weft::predict {

struct Strategy {
  int64_t ranks = 1;           // in all
  int64_t ranks_per_host = 1;  // the last host may have fewer
  int64_t threads = 1;         // of each
  int64_t batch = 1;           // samples of all ranks together that are computed at a time
  int64_t accumulate = 1;      // such batches per step
  std::string precision = "f32";
  int64_t zero = 0;                  // shard.zero
  bool late_multiply = true;         // where it is predicted to pay
  std::string compression = "none";  // compression.method
  int64_t averaging_period = 0;      // steps from one mean of the weights to the next; 0: gradients are averaged
  int64_t states_every = 1;          // such means from one of all states to the next
  std::string memory_limit = {};     // what activations are computed again for; empty: the machine's memory
  std::string offload = {};          // where those lie that it leaves no place for
  int64_t tensor = 1;                // mesh.tensor: ranks that share the layers
  int64_t pipeline = 1;              // mesh.pipeline: ranks that divide the layers; the others divide each batch
  std::string schedule = "1f1b";     // pipeline.*, which mean something with several ranks along the pipeline alone
  int64_t micro_batches = 4, chunks = 2;
  friend bool operator==(const Strategy&, const Strategy&) = default;

  int64_t hosts() const { return (ranks + ranks_per_host - 1) / ranks_per_host; }
  /// Ranks that divide each batch.
  int64_t data() const { return std::max<int64_t>(1, ranks / (tensor * pipeline)); }
  /// Samples that a rank computes at a time.
  int64_t rows() const { return batch / data() / (pipeline > 1 ? micro_batches : 1); }
};

/// Of a resolved recipe on so many ranks.
Strategy strategy_of(const spec::RunSpec& spec, int64_t ranks, int64_t ranks_per_host);
/// Sets the recipe's keys to it. Does not resolve the recipe.
void apply(const Strategy& strategy, spec::RunSpec& spec);
/// The recipe with these keys, resolved. Error(usage) that a run of it on so many ranks would end with.
spec::RunSpec recipe_by(const Strategy& strategy, const spec::RunSpec& spec, const Entries& entries);
/// Whether so many ranks are a mesh of the recipe, and divide its batch and its virtual ranks alike.
bool can_divide(const spec::RunSpec& spec, int64_t ranks);
/// "4 ranks on 2 hosts, zero 1, bf16 gradients": without what is as usual.
std::string describe(const Strategy& strategy);

nlohmann::ordered_json to_json(const Strategy& strategy);
/// Keys that are missing keep their defaults.
Strategy strategy_from(const nlohmann::json& root);

}  // namespace weft::predict
