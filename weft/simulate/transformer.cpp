#include "weft/simulate/transformer.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/simulate/collective_cost.h"
#include "weft/simulate/pipeline_order.h"

namespace weft::simulate {

using machines::Work;
using machines::WorkClass;

namespace {

constexpr double kExposed = 0.25;  // of messages that hide behind products

/// The work of one layer, kernel by kernel.
class LayerWork {
 public:
  LayerWork(const TransformerShape& shape, const Strategy& strategy, const machines::ClusterFile& cluster,
            const machines::Calibration& calibration)
      : s_(shape), t_(strategy), cluster_(cluster), calibration_(calibration) {
    if (!cluster.device)
      fail(ErrorKind::usage, "cluster '{}' names no device; add machine.device to its file", cluster.name);
    stored_ = static_cast<double>(machines::bytes_of(strategy.stored));
    rows_ = static_cast<double>(strategy.micro_batch * shape.sequence) / strategy.context;
    h_ = static_cast<double>(shape.hidden);
    own_rows_ = strategy.sequence_parallel ? rows_ / strategy.tensor : rows_;
  }

  /// Seconds of a product of [rows, inner] by [inner, columns].
  double product(double rows, double inner, double columns) {
    flops_ += 2 * rows * inner * columns;
    return seconds({WorkClass::matrix_product, 2 * rows * inner * columns,
                    stored_ * (rows * inner + inner * columns + rows * columns), t_.arithmetic, rows * columns});
  }
  /// The product, and those of its gradients: of its operand, and of its weights.
  struct Products {
    double forward = 0, input = 0, weight = 0;
    void add(const Products& other, double times) {
      forward += times * other.forward;
      input += times * other.input;
      weight += times * other.weight;
    }
  };
  Products products(double rows, double inner, double columns) {
    const double before = flops_;
    const Products all{product(rows, inner, columns), product(rows, columns, inner), product(inner, rows, columns)};
    flops_ = before + 2 * rows * inner * columns;
    return all;
  }
  /// Of so many passes over [rows, columns] numbers; those that a compiler joins to their neighbours cost half.
  double sweep(double passes, double rows, double columns) const {
    return seconds({WorkClass::memory, 0, (t_.fused ? 0.6 : 1) * passes * stored_ * rows * columns, t_.arithmetic});
  }

  LayerCost run() {
    LayerCost cost;
    const double T = t_.tensor, kv = static_cast<double>(s_.key_heads) / static_cast<double>(s_.heads);
    const double qkv = (1 + 2 * kv) * h_ / T, ffn = static_cast<double>(s_.feed_forward) / T;
    flops_ = 0;
    Products all;
    all.add(products(rows_, h_, qkv), 1);
    all.add(products(rows_, h_ / T, h_), 1);
    all.add(products(rows_, h_, ffn), s_.gated ? 2 : 1);
    all.add(products(rows_, ffn, h_), 1);
    if (s_.gated) flops_ += 2 * rows_ * h_ * ffn;
    const double product_flops = flops_;
    // Two norms of three passes each; bias, dropout with its random numbers and residual of six behind either half; the
    // activation of three.
    const double sweeps =
        sweep(6, own_rows_, h_) + sweep(s_.gated ? 4 : 12, own_rows_, h_) + sweep(s_.gated ? 4 : 3, rows_, ffn);
    const Attention attention = this->attention();
    const double messages = tensor_messages();
    const double context = context_messages();
    cost.forward = all.forward + sweeps + attention.forward + messages + std::max(0.0, context - attention.forward);
    // Of each product's gradients one is of its operand and one of its weights.
    cost.backward_input =
        all.input + 1.5 * sweeps + attention.backward + messages + std::max(0.0, 2 * context - attention.backward);
    cost.backward_weight = all.weight;
    cost.tensor_seconds = 2 * messages + 3 * context;
    cost.flops = 3 * (product_flops + attention.flops);
    if (t_.recompute == Recompute::full) {
      cost.backward_input += cost.forward;
      cost.tensor_seconds += messages;
    } else if (t_.recompute == Recompute::selective) {
      cost.backward_input += attention.forward;
    } else if (t_.recompute == Recompute::half) {
      cost.backward_input += 0.5 * all.forward + sweeps;
    }
    return cost;
  }

  LayerCost first() {
    // A row of the table per token, and its gradient added; positions and dropout.
    const double look_up = sweep(4, own_rows_, h_);
    return {.forward = look_up, .backward_input = 0, .backward_weight = 2 * look_up};
  }

  LayerCost last() {
    flops_ = 0;
    const double rows = rows_ * s_.predicted_share, columns = static_cast<double>(s_.vocabulary) / t_.tensor;
    const Products logits = products(rows, h_, columns);
    const double norm = sweep(3, own_rows_, h_);
    // The loss in f32: written, maximum, exponential and sum, gradient.
    const double f32_share = 4 / stored_;
    const double loss = sweep(4 * f32_share, rows, columns);
    const double messages = t_.tensor > 1 ? tensor_seconds_of(Collective::all_reduce, rows_ * h_ * stored_) : 0;
    return {.forward = logits.forward + norm + loss,
            .backward_input = logits.input + 2 * norm + messages + 0.5 * loss,
            .backward_weight = logits.weight,
            .tensor_seconds = messages,
            .flops = 3 * flops_};
  }

 private:
  struct Attention {
    double forward = 0, backward = 0, flops = 0;
  };

  Attention attention() {
    const double keys = static_cast<double>(s_.sequence), heads = static_cast<double>(s_.heads) / t_.tensor;
    const double all = 4 * rows_ * keys * h_ / t_.tensor;  // both products, of all pairs
    Attention result{.flops = all};
    if (t_.flash_attention) {
      // Causal masks halve the pairs; the backward part has five products in place of two (Dao et al. 2022).
      const double done = s_.causal ? all / 2 : all;
      const double bytes = stored_ * 4 * rows_ * h_ / t_.tensor;
      result.forward = seconds({WorkClass::attention, done, bytes, attention_arithmetic()});
      result.backward = seconds({WorkClass::attention, 2.5 * done, 2 * bytes, attention_arithmetic()});
      return result;
    }
    const double scores = rows_ * heads * keys;
    // Many small products, one for each head of each sample.
    const double one = seconds(
        {WorkClass::attention, all / 2, stored_ * (scores + 2 * rows_ * h_ / t_.tensor), attention_arithmetic()});
    // Scale, mask and softmax in one kernel, dropout with its mask in another; heads are moved together and apart.
    const double softmax = sweep(3, scores, 1) + sweep(3, scores, 1) + sweep(8, rows_, h_ / t_.tensor);
    result.forward = 2 * one + softmax;
    result.backward = 4 * one + 1.2 * softmax;
    return result;
  }

  /// Attention is not computed in 8 bits.
  machines::Arithmetic attention_arithmetic() const {
    return t_.arithmetic == machines::Arithmetic::f8 ? machines::Arithmetic::bf16 : t_.arithmetic;
  }

  GroupShape tensor_group() const {
    const int per_host = std::min(t_.tensor, cluster_.devices_per_host);
    return {.size = t_.tensor, .per_host = per_host, .groups_per_host = cluster_.devices_per_host / per_host};
  }
  double tensor_seconds_of(Collective kind, double bytes) const {
    return cost_of(kind, bytes, tensor_group(), cluster_).seconds();
  }

  /// Two all-reduces each way, or the gathers and scatters that make one; hidden ones leave the fifth that begins
  /// before and ends behind the product.
  double tensor_messages() const {
    if (t_.tensor == 1) return 0;
    const double bytes = rows_ * h_ * stored_;
    const double both = t_.sequence_parallel ? tensor_seconds_of(Collective::all_gather, bytes) +
                                                   tensor_seconds_of(Collective::reduce_scatter, bytes)
                                             : tensor_seconds_of(Collective::all_reduce, bytes);
    return (t_.overlaps_tensor ? kExposed : 1) * 2 * both;
  }

  /// Keys and values go around the ring of the context axis (Liu et al. 2023) while the parts there are computed.
  double context_messages() const {
    if (t_.context == 1) return 0;
    const double bytes =
        2 * rows_ * static_cast<double>(s_.key_heads) / static_cast<double>(s_.heads) * h_ / t_.tensor * stored_;
    const bool leaves = t_.tensor * t_.context > cluster_.devices_per_host;
    return (t_.context - 1) * message_cost(bytes, leaves, cluster_.devices_per_host, cluster_).seconds();
  }

  double seconds(const Work& work) const { return machines::seconds_of(work, *cluster_.device, calibration_); }

  const TransformerShape& s_;
  const Strategy& t_;
  const machines::ClusterFile& cluster_;
  const machines::Calibration calibration_;
  double stored_ = 2, rows_ = 0, own_rows_ = 0, h_ = 0, flops_ = 0;
};

}  // namespace

std::string_view name_of(Recompute recompute) {
  constexpr std::string_view names[] = {"none", "selective", "half", "full"};
  return names[static_cast<size_t>(recompute)];
}

std::string_view name_of(PipelineSchedule schedule) {
  constexpr std::string_view names[] = {"1f1b", "gpipe", "zb1", "zb2", "zero_bubble", "zero_bubble_v"};
  return names[static_cast<size_t>(schedule)];
}

TransformerShape TransformerShape::completed() const {
  TransformerShape shape = *this;
  if (shape.key_heads == 0) shape.key_heads = shape.heads;
  // LLaMA's: two thirds of 4 h, up to a multiple of 256 (Touvron et al. 2023).
  if (shape.feed_forward == 0)
    shape.feed_forward = shape.gated ? (8 * shape.hidden / 3 + 255) / 256 * 256 : 4 * shape.hidden;
  if (shape.hidden % shape.heads != 0)
    fail(ErrorKind::usage, "hidden = {} does not divide by heads = {}; choose a number of heads that does",
         shape.hidden, shape.heads);
  if (shape.heads % shape.key_heads != 0)
    fail(ErrorKind::usage, "heads = {} does not divide by key-heads = {}", shape.heads, shape.key_heads);
  return shape;
}

double TransformerShape::layer_parameters() const {
  const TransformerShape s = completed();
  const auto h = static_cast<double>(s.hidden);
  const double kv = static_cast<double>(s.key_heads) / static_cast<double>(s.heads);
  const double attention = (2 + 2 * kv) * h * h, ffn = (s.gated ? 3 : 2) * h * static_cast<double>(s.feed_forward);
  return attention + ffn + (s.gated ? 2 * h : 13 * h);  // biases and norms; gated ones have no biases
}

int TransformerShape::tables_of_stage(bool has_first, bool has_last) const {
  if (has_first && has_last) return tied ? 1 : 2;
  return has_first || has_last ? 1 : 0;
}

double TransformerShape::parameters() const {
  const auto h = static_cast<double>(hidden), table = static_cast<double>(vocabulary) * h;
  return static_cast<double>(layers) * layer_parameters() + tables_of_stage(true, true) * table +
         (gated ? h : static_cast<double>(sequence) * h + 2 * h);
}

LayerCost layer_cost(const TransformerShape& shape, const Strategy& strategy, const machines::ClusterFile& cluster,
                     const machines::Calibration& calibration) {
  return LayerWork(shape, strategy, cluster, calibration).run();
}
LayerCost first_cost(const TransformerShape& shape, const Strategy& strategy, const machines::ClusterFile& cluster,
                     const machines::Calibration& calibration) {
  return LayerWork(shape, strategy, cluster, calibration).first();
}
LayerCost last_cost(const TransformerShape& shape, const Strategy& strategy, const machines::ClusterFile& cluster,
                    const machines::Calibration& calibration) {
  return LayerWork(shape, strategy, cluster, calibration).last();
}

TransformerMemory memory_of(const TransformerShape& given, const Strategy& t) {
  const TransformerShape shape = given.completed();
  const auto s = static_cast<double>(shape.sequence) / t.context, h = static_cast<double>(shape.hidden);
  const auto b = static_cast<double>(t.micro_batch), a = static_cast<double>(shape.heads);
  const double T = t.tensor, P = t.pipeline, stored = static_cast<double>(machines::bytes_of(t.stored));
  const double layers = static_cast<double>(shape.layers) / P;
  const passes::StagePlacement placement = placement_of(t.schedule, t.pipeline, t.chunks);
  const bool first_is_last = placement.rank_of(placement.stages() - 1) == placement.rank_of(0);
  const double tables = shape.tables_of_stage(true, first_is_last) * static_cast<double>(shape.vocabulary) * h;
  const double own = (shape.layer_parameters() * layers + tables) / T;  // of the first stage
  const double sharers = t.data / t.replicas;
  TransformerMemory memory;
  const double slots = stored == 2 ? 12 : 8;
  memory.states = own * stored / (t.zero >= 3 ? sharers : 1) +
                  own * (t.zero >= 3 ? stored : t.gradient_bytes) / (t.zero >= 2 ? sharers : 1) +
                  own * slots / (t.zero >= 1 ? sharers : 1);
  // In units of s b h bytes of 16 bits; f32 takes twice as much, masks of dropout aside.
  const double unit = s * b * h * stored / 2;
  const double scores = t.flash_attention || t.recompute == Recompute::selective || t.recompute == Recompute::half
                            ? 0
                            : 5 * a * static_cast<double>(shape.sequence) / h / T;
  double of_layer = t.sequence_parallel ? 34 / T + scores : 10 + 24 / T + scores;
  if (t.recompute == Recompute::half) of_layer /= 2;
  // The first stage keeps as many micro-batches as there are stages (1F1B), or all (GPipe).
  const auto m = static_cast<double>(t.micro_batches());
  double in_flight = std::min(P, m);
  if (t.schedule == PipelineSchedule::gpipe) in_flight = m;
  if (t.schedule == PipelineSchedule::zero_bubble_2) in_flight = std::min(2 * P - 1, m);
  // In a V every rank keeps as much as the first one does by 1F1B.
  if (t.chunks > 1 && t.schedule != PipelineSchedule::zero_bubble_v) in_flight *= 1 + (P - 1) / (P * t.chunks);
  memory.activations = t.recompute == Recompute::full
                           ? (2 * layers * in_flight * (t.sequence_parallel ? 1 / T : 1) + of_layer) * unit
                           : of_layer * layers * in_flight * unit;
  if (t.zero >= 3) memory.buffers += 2 * shape.layer_parameters() / T * stored;
  if (P == 1)
    memory.buffers += s * b * shape.predicted_share * static_cast<double>(shape.vocabulary) / T * (4 + stored);
  return memory;
}

}  // namespace weft::simulate
