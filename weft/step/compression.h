// Gradients made smaller before ranks exchange them, tensor by tensor where that is predicted to pay: in bf16 or f16,
// as products of narrow matrices (PowerSGD: Vogels, Karimireddy, Jaggi 2019), as their largest elements (top-k: Aji,
// Heafield 2017), as signs (1-bit SGD: Seide et al. 2014). What the last three leave out each rank adds to its next
// gradient (error feedback: Karimireddy et al. 2019), in the slots "optimizer/compression_error/NAME".
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

/// By what a gradient's way is priced.
struct CompressionCosts {
  passes::Ranks ranks = {};
  DType dtype = DType::f32;  // in which matrices are multiplied
  int threads = 1;
  std::shared_ptr<const CostModel> nodes = rated_costs();
};

/// "none", or the method by which the gradient, a value of the graph, is exchanged: that which the spec names, or the
/// cheapest, where it takes less time than all others that lose nothing.
std::string choose_compression(const Graph& graph, ValueId gradient, const spec::CompressionSpec& spec,
                               const CompressionCosts& costs);

/// Each gradient becomes the mean over the ranks, or what compression makes of it. Returns the slots of what is
/// carried along, whose successors are declared.
std::vector<SlotSpec> exchange_gradients(Graph& graph, std::vector<TrainedParameter>& parameters,
                                         const spec::CompressionSpec& spec, const CompressionCosts& costs);

/// The graph with what makes gradients smaller moved to where these are there, so that they travel early.
Graph compress_early(const Graph& graph);

/// Whether the state is what ranks carry along each for itself.
bool is_compression_error(const std::string& state);

/// Of a run that goes on, perhaps on other links, where other tensors are worth it: slots that the step wants and the
/// state lacks begin anew, and those that it no longer wants go.
void renew_compression_slots(const std::vector<SlotSpec>& slots, State& state);

}  // namespace weft::step
