// Compression of the gradients that ranks exchange, tensor by tensor where it should save time: as bf16 or f16, as
// products of narrow matrices (PowerSGD: Vogels, Karimireddy, Jaggi 2019), as their largest elements (top-k: Aji,
// Heafield 2017), or as signs (1-bit SGD: Seide et al. 2014). With the last three, each rank adds what they leave out
// to its next gradient (error feedback: Karimireddy et al. 2019), in the slots "optimizer/compression_error/NAME".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/device/state.h"
#include "weft/graph/graph.h"
#include "weft/passes/pipeline.h"
#include "weft/spec/run_spec.h"
#include "weft/step/optimizers/optimizer.h"

namespace weft::step {

inline constexpr const char* kCompressionErrorSlot = "compression_error";
inline constexpr const char* kCompressionFactorSlot = "compression_factor";  // PowerSGD's, from step to step

/// The costs by which ways to exchange a gradient are compared.
struct CompressionCosts {
  passes::Ranks ranks = {};
  DType dtype = DType::f32;  // in which matrices are multiplied
  int threads = 1;
  std::shared_ptr<const CostModel> nodes = rated_costs();
  double computing_seconds = 0;  // of a step without its exchange, by which `auto` judges what a step gains
};

/// The method by which a gradient, a value of the graph, is exchanged, or "none", where only this gradient counts. It
/// is the method that the spec names, or, by `auto`, the cheapest that needs about as many steps, where it takes less
/// time than every method that loses nothing.
std::string choose_compression(const Graph& graph, ValueId gradient, const spec::CompressionSpec& spec,
                               const CompressionCosts& costs);

/// Seconds of all nodes of the graph that exchange nothing.
double computing_seconds(const Graph& graph, const CompressionCosts& costs);

/// Replaces each gradient by its mean over the ranks, compressed as chosen. `auto` compresses none where a step would
/// hardly gain, and leaves out what needs more steps where steps gain less than that. Returns the slots that carry
/// state between steps and declares their successors.
std::vector<SlotSpec> exchange_gradients(Graph& graph, std::vector<TrainedParameter>& parameters,
                                         const spec::CompressionSpec& spec, const CompressionCosts& costs);

/// Returns the graph with compression moved to where each gradient is computed, so that gradients travel early.
Graph compress_early(const Graph& graph);

/// Whether `state` is a state that each rank carries for itself.
bool is_compression_error(const std::string& state);

/// For a resumed run, whose links may make compression pay for other tensors: starts slots that the step needs and the
/// state lacks, and removes slots that the step no longer needs.
void renew_compression_slots(const std::vector<SlotSpec>& slots, State& state);

}  // namespace weft::step
