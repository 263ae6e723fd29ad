// Transformers by their sizes: the work of a layer on one of several ranks, its messages and its memory, as Megatron-LM
// divides them (Shoeybi et al. 2019; Narayanan et al. 2021; Korthikanti et al. 2022). For models that are too large to
// build as graphs, and strategies that weft simulates before it runs them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/machines/cluster_file.h"
#include "weft/machines/roofline.h"

namespace weft::simulate {

struct TransformerShape {
  int64_t layers = 12, hidden = 768, heads = 12;
  int64_t key_heads = 0;     // of keys and values; 0: as many as heads
  int64_t feed_forward = 0;  // 0: 4 hidden, or as LLaMA's where gated
  bool gated = false;        // three matrices in place of two
  int64_t sequence = 1024, vocabulary = 51200;
  bool causal = true;
  bool tied = true;            // the last matrix is the embedding
  double predicted_share = 1;  // of the positions, whose logits are computed: 0.15 of a masked language model

  /// Fills in what is 0. Error(usage) where sizes do not divide.
  TransformerShape completed() const;
  /// Tables of the vocabulary on a stage that has the first layers, the last ones, or both: where they are tied, the
  /// embedding and the last matrix are one.
  int tables_of_stage(bool has_first, bool has_last) const;
  double layer_parameters() const;
  double parameters() const;
  friend bool operator==(const TransformerShape&, const TransformerShape&) = default;
};

/// "layers=24,hidden=1024,heads=16,key-heads=8,feed-forward=4096,sequence=1024,vocabulary=51200,gated=yes,causal=no,
/// tied=no,predicted-percent=15". Error(usage) naming the key, with the nearest one.
TransformerShape parse_shape(std::string_view text);

/// `selective`: attention alone (Korthikanti et al. 2022); `half`: every other product and all that is no product.
enum class Recompute { none, selective, half, full };
/// The middle two are orders of published runs, with micro-batches kept as by 1F1B or twice that; the last two are
/// those that weft runs.
enum class PipelineSchedule {
  one_forward_one_backward,
  gpipe,
  zero_bubble_1,
  zero_bubble_2,
  zero_bubble,
  zero_bubble_v,
};
std::string_view name_of(Recompute recompute);
std::string_view name_of(PipelineSchedule schedule);

/// How a training run is divided among ranks, as plain data: every axis is 1 where it is not used.
struct Strategy {
  int data = 1, tensor = 1, pipeline = 1, context = 1;
  int replicas = 1;         // of the `data` ranks that share states: hybrid sharding. Divides `data`.
  int64_t batch = 1;        // samples of a step, over all ranks
  int64_t micro_batch = 1;  // samples that a rank computes at a time
  int chunks = 1;           // of layers on each stage: interleaved schedules
  int zero = 0;             // 1 optimiser's slots, 2 gradients, 3 weights are shared by the ranks of the data axis
  Recompute recompute = Recompute::none;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  bool sequence_parallel = false;  // norms and dropout are divided along the tensor axis too
  bool flash_attention = false;    // without its scores in memory
  bool overlaps_gradients = true;  // they are exchanged during the backward part
  bool overlaps_tensor = false;    // messages of the tensor axis hide behind products
  bool overlaps_messages = false;  // stages compute while they send; else they wait, as Megatron-LM's 1F1B does
  bool fused = false;              // elementwise work is done along with products where a compiler can
  machines::Arithmetic arithmetic = machines::Arithmetic::bf16;
  machines::Arithmetic stored = machines::Arithmetic::bf16;  // weights and activations in memory
  double gradient_bytes = 4;                                 // per parameter, as exchanged

  int ranks() const { return data * tensor * pipeline * context; }
  int64_t micro_batches() const;  // of a step, on each data rank. Error(usage) where the batch does not divide
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// "data=8,tensor=4,micro-batch=2,zero=1,recompute=full": the ranks that are left go to `data`, where it is not given.
/// Error(usage) naming the key, with the nearest one.
Strategy parse_strategy(std::string_view text, int ranks, int64_t batch);
std::string describe(const Strategy& strategy);

/// Seconds of one micro-batch on one rank, without messages of the pipeline and data axes.
struct LayerCost {
  double forward = 0, backward_input = 0, backward_weight = 0;  // with what is computed again, in backward_input
  double tensor_seconds = 0;                                    // of the above: messages of the tensor and context axes
  double flops = 0;  // of forward and backward, without what is computed again
};
LayerCost layer_cost(const TransformerShape& shape, const Strategy& strategy, const machines::ClusterFile& cluster,
                     const machines::Calibration& calibration);
/// Embedding on the first stage; last norm, logits and loss on the last one.
LayerCost first_cost(const TransformerShape& shape, const Strategy& strategy, const machines::ClusterFile& cluster,
                     const machines::Calibration& calibration);
LayerCost last_cost(const TransformerShape& shape, const Strategy& strategy, const machines::ClusterFile& cluster,
                    const machines::Calibration& calibration);

/// Bytes of a rank of the fullest stage.
struct TransformerMemory {
  double states = 0;  // weights, gradients, the optimiser's slots (Adam in f32, with f32 masters of 16-bit weights)
  double activations = 0;  // of all micro-batches that are under way (Korthikanti et al. 2022, equations 1 to 6)
  double buffers = 0;      // gathered weights, logits
  double total() const { return states + activations + buffers; }
};
TransformerMemory memory_of(const TransformerShape& shape, const Strategy& strategy);

}  // namespace weft::simulate
